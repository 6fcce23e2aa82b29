// Cross memory: the private memory of another process of this machine, read and written with one copy, nothing staged.
//
// The kernel must allow it (docs/decisions/0013-cross-memory.md): probe() asks at connect, before anything relies on
// it. Addresses are those of the other process; what is not mapped there is an error, never a signal. No order between
// these bytes and any flag but what the flag's own release and acquire give. Thread-safe, stateless.
#pragma once

#include <cstddef>
#include <cstdint>

namespace talaria::cross_memory {

// All return 0, or an errno: ESRCH when the process has ended, EFAULT when a byte is not mapped, not writable, or lies
// in a device's memory. Then some of the bytes may have moved.
int read(int process, void* to, const void* from, size_t bytes);
int write(int process, const void* from, void* to, size_t bytes);

// Can this process read and write the memory of `process`? `nonce` is the value at `address` there, which proves that
// it is the process meant; a mismatch is ESRCH.
int probe(int process, uint64_t address, uint64_t nonce);

// May others reach [data, data + bytes) of this process this way? Looks at its two ends.
bool reachable(const void* data, size_t bytes);

}  // namespace talaria::cross_memory
