// Builds without CUDA have no GPUs.
#include "device.h"
#include "fatal.h"

namespace talaria::bench {

int visible_gpus() { return 0; }

std::unique_ptr<Device> make_gpu_device(int ordinal, bool) { fatal("device {}: built without CUDA", ordinal); }

}  // namespace talaria::bench
