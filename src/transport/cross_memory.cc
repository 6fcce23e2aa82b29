#include "transport/cross_memory.h"

#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>

namespace talaria::cross_memory {
namespace {

using Move = ssize_t (*)(pid_t, const iovec*, unsigned long, const iovec*, unsigned long, unsigned long);

// The kernel may stop early: at a page that is not there, which the next turn then names, or at its own limit.
int move_all(Move move, int process, uint64_t here, uint64_t there, size_t bytes) {
  while (bytes > 0) {
    const iovec local{reinterpret_cast<void*>(here), bytes}, remote{reinterpret_cast<void*>(there), bytes};
    const ssize_t moved = move(process, &local, 1, &remote, 1, 0);
    if (moved < 0 && errno == EINTR) continue;
    if (moved <= 0) return moved < 0 ? errno : EFAULT;
    here += static_cast<size_t>(moved), there += static_cast<size_t>(moved), bytes -= static_cast<size_t>(moved);
  }
  return 0;
}

uint64_t address_of(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

}  // namespace

int read(int process, void* to, const void* from, size_t bytes) {
  return move_all(process_vm_readv, process, address_of(to), address_of(from), bytes);
}

int write(int process, const void* from, void* to, size_t bytes) {
  return move_all(process_vm_writev, process, address_of(from), address_of(to), bytes);
}

// Writing back what was read changes nothing and shows that writing is allowed, too.
int probe(int process, uint64_t address, uint64_t nonce) {
  uint64_t seen = 0;
  void* const there = reinterpret_cast<void*>(address);
  if (const int error = read(process, &seen, there, sizeof seen); error != 0) return error;
  if (seen != nonce) return ESRCH;
  return write(process, &seen, there, sizeof seen);
}

bool reachable(const void* data, size_t bytes) {
  if (data == nullptr || bytes == 0) return true;
  std::byte ends[2];
  const iovec local{ends, sizeof ends};
  const iovec remote[2] = {{const_cast<void*>(data), 1},
                           {static_cast<std::byte*>(const_cast<void*>(data)) + bytes - 1, 1}};
  return process_vm_readv(getpid(), &local, 1, remote, 2, 0) == static_cast<ssize_t>(sizeof ends);
}

}  // namespace talaria::cross_memory
