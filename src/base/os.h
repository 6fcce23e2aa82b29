// The operating system, as far as the pure side may touch it: environment, names, time, random bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace talaria {

std::optional<std::string> environment(const char* name);
// Names of all variables that are set.
std::vector<std::string> environment_names();
// The whole of a file; nothing if it cannot be read.
std::optional<std::string> read_file(const std::string& path);
// Where a file of the machine, such as /etc/nccl.conf, is looked for: at `path`, below the root that a test has set.
std::string system_path(const std::string& path);
void set_system_root_for_tests(const std::string& root);
const std::string& host_name();
// Identity of this machine: NCCL_HOSTID if set, else host name and boot id. Equal on processes of one machine.
uint64_t host_hash(const std::string& host_id_override);
// Identity of this process, never equal for two processes that live at one time, on whatever machines.
uint64_t process_hash();
// The same of process `pid`, if it lives in the PID namespace of this one.
uint64_t process_hash_of(int pid);
// Has process `pid` of this PID namespace ended? False also where the system does not tell.
bool process_ended(int pid);
// The cores that the calling thread may run on. Threads with equal `set` share theirs. Count 1 if the system does not
// tell.
struct UsableCores {
  uint64_t set;
  uint32_t count;
};
UsableCores usable_cores();
// Tells the process that made it from the children that it forks later, without a system call.
class ForkMark {
 public:
  ForkMark();
  // Does the process that made this object ask?
  bool here() const;
  int process() const { return process_; }

 private:
  int process_;
};
int thread_id();
void set_thread_name(const char* name);  // at most 15 characters
double now_usec();                       // monotonic
void fill_random(std::span<std::byte> bytes);
uint64_t random_u64();

// FNV-1a, 64 bits (Fowler, Noll, Vo).
uint64_t text_hash(std::string_view text);
// Half of a fence for two threads that each store a word and then load the other's: one side, run often, need only keep
// the compiler in order, because the other, run rarely, makes every thread of the machine pass a fence, which may take
// tens of milliseconds. False where the system does not offer it: then the often-run side needs a whole fence.
bool has_remote_fence();
void remote_fence();
// Tells the core that the caller spins.
inline void cpu_pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace talaria
