#include "base/os.h"

#include <fcntl.h>
#include <linux/membarrier.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/unique.h"

namespace talaria {
namespace {

std::string read_small_file(const char* path) {
  std::string text(128, '\0');
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  const ssize_t got = read(fd, text.data(), text.size());
  close(fd);
  text.resize(got > 0 ? static_cast<size_t>(got) : 0);
  return text;
}

// Leaked on purpose: calls from static destructors must still find it.
std::string& system_root() {
  static std::string* root = new std::string;
  return *root;
}

// The id of this process, if it has made a ForkMark: the system wipes the word in forked children. Null where it
// cannot.
std::atomic<int>* wiped_by_fork() {
  static std::atomic<int>* const word = []() -> std::atomic<int>* {
    const auto bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    void* page = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return nullptr;
    if (madvise(page, bytes, MADV_WIPEONFORK) == 0) return new (page) std::atomic<int>(0);
    munmap(page, bytes);
    return nullptr;
  }();
  return word;
}

}  // namespace

std::optional<std::string> environment(const char* name) {
  const char* value = getenv(name);
  if (value == nullptr) return std::nullopt;
  return std::string(value);
}

std::vector<std::string> environment_names() {
  std::vector<std::string> names;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    names.emplace_back(text.substr(0, text.find('=')));
  }
  return names;
}

std::optional<std::string> read_file(const std::string& path) {
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return std::nullopt;
  std::string text;
  char buffer[4096];
  ssize_t got = 0;
  while ((got = read(file.get(), buffer, sizeof(buffer))) > 0) text.append(buffer, static_cast<size_t>(got));
  if (got < 0) return std::nullopt;
  return text;
}

std::string system_path(const std::string& path) { return system_root() + path; }

void set_system_root_for_tests(const std::string& root) { system_root() = root; }

const std::string& host_name() {
  static const std::string* name = [] {
    char buffer[256] = "unknown";
    gethostname(buffer, sizeof(buffer) - 1);
    return new std::string(buffer);
  }();
  return *name;
}

uint64_t host_hash(const std::string& host_id_override) {
  if (!host_id_override.empty()) return text_hash(host_id_override);
  return text_hash(host_name() + read_small_file("/proc/sys/kernel/random/boot_id"));
}

uint64_t process_hash() { return process_hash_of(getpid()); }

uint64_t process_hash_of(int pid) {
  struct stat pid_namespace {};
  stat("/proc/self/ns/pid", &pid_namespace);
  // Namespaces have the same numbers on every machine: the boot id tells those apart.
  return text_hash(std::to_string(pid) + "@" + std::to_string(pid_namespace.st_ino) + "@" +
                   read_small_file("/proc/sys/kernel/random/boot_id"));
}

bool process_ended(int pid) {
  const UniqueFd process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!process.valid()) return errno == ESRCH;
  pollfd entry{process.get(), POLLIN, 0};  // readable once all its threads have ended, reaped or not
  return poll(&entry, 1, 0) == 1;
}

bool has_remote_fence() {
  const long commands = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
  return commands > 0 && (commands & MEMBARRIER_CMD_GLOBAL) != 0;
}

void remote_fence() { syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0); }

UsableCores usable_cores() {
  constexpr size_t kLargestMask = 1 << 13;  // bytes; 65,536 cores
  std::vector<cpu_set_t> mask(1);
  while (sched_getaffinity(0, mask.size() * sizeof(cpu_set_t), mask.data()) != 0) {
    if (errno != EINVAL || mask.size() * sizeof(cpu_set_t) >= kLargestMask) return {0, 1};
    mask.assign(mask.size() * 2, cpu_set_t{});
  }
  const size_t bytes = mask.size() * sizeof(cpu_set_t);
  const int count = CPU_COUNT_S(bytes, mask.data());
  return {text_hash({reinterpret_cast<const char*>(mask.data()), bytes}), static_cast<uint32_t>(std::max(count, 1))};
}

ForkMark::ForkMark() : process_(getpid()) {
  if (std::atomic<int>* word = wiped_by_fork()) word->store(process_, std::memory_order_relaxed);
}

bool ForkMark::here() const {
  const std::atomic<int>* word = wiped_by_fork();
  return (word != nullptr ? word->load(std::memory_order_relaxed) : getpid()) == process_;
}

// Not cached: the thread that forks has another id in the child.
int thread_id() { return static_cast<int>(syscall(SYS_gettid)); }

void set_thread_name(const char* name) { pthread_setname_np(pthread_self(), name); }

double now_usec() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void fill_random(std::span<std::byte> bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = getrandom(bytes.data() + done, bytes.size() - done, 0);
    if (got > 0) done += static_cast<size_t>(got);
    else if (errno != EINTR) abort();  // without randomness no secret can be made
  }
}

uint64_t random_u64() {
  uint64_t value = 0;
  fill_random(std::as_writable_bytes(std::span(&value, 1)));
  return value;
}

uint64_t text_hash(std::string_view text) {
  uint64_t hash = 14695981039346656037ull;
  for (unsigned char c : text) hash = (hash ^ c) * 1099511628211ull;
  return hash;
}

}  // namespace talaria
