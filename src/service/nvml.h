// What only NVIDIA's management library knows. It is loaded when asked, and part of no interface.
#pragma once

#include <string>

namespace talaria {

// The index that NVML gives to the GPU with this PCI bus id; -1 where there is no NVML, or it does not know the GPU.
int nvml_index_of(const std::string& bus_id);

}  // namespace talaria
