// Feeds the fuzz targets seeded mutations of inputs that get far: fuzz_driver [--inputs N] [--seed S] [--target NAME].
//
// The same seed gives the same inputs. A crash or a hang names target, seed and input; descriptors and memory must be
// where they were.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>
#include <string>
#include <thread>

#include "base/os.h"
#include "fuzz/targets.h"

namespace talaria::test {
namespace {

constexpr size_t kLongest = 4096;

class Mutator {
 public:
  Mutator(const std::vector<Bytes>& seeds, uint64_t seed) : seeds_(seeds), random_(seed) {}

  Bytes next() {
    Bytes input = seeds_[below(seeds_.size())];
    const uint64_t changes = below(6);  // none at times
    for (uint64_t i = 0; i < changes; ++i) change(input);
    if (input.size() > kLongest) input.resize(kLongest);
    return input;
  }

 private:
  uint64_t below(uint64_t end) { return end == 0 ? 0 : random_() % end; }

  void change(Bytes& input) {
    static constexpr uint8_t kTelling[] = {0, 1, 0x7f, 0x80, 0xff, ',', ':', ';', '^', '=', '-', '%', '[', ']', '\n'};
    const size_t at = below(input.size() + 1);
    const auto place = input.begin() + static_cast<ptrdiff_t>(at);
    switch (below(8)) {
      case 0: if (at < input.size()) input[at] ^= static_cast<uint8_t>(1u << below(8)); break;
      case 1: if (at < input.size()) input[at] = kTelling[below(sizeof(kTelling))]; break;
      case 2: input.insert(place, kTelling[below(sizeof(kTelling))]); break;
      case 3: input.erase(place, place + static_cast<ptrdiff_t>(below(input.size() - at + 1))); break;
      case 4: {  // a word of 4 or 8 bytes
        static constexpr uint64_t kWords[] = {0, 1, 3, 0x7fffffff, 0x80000000, 0xffffffff, ~0ull, 1ull << 63};
        const uint64_t word = kWords[below(std::size(kWords))];
        const size_t bytes = std::min<size_t>(below(2) == 0 ? 4 : 8, input.size() - at);
        memcpy(input.data() + at, &word, bytes);
        break;
      }
      case 5: input.resize(at); break;
      case 6: {  // the rest from another seed
        const Bytes& other = seeds_[below(seeds_.size())];
        input.resize(at);
        const size_t from = below(other.size() + 1);
        input.insert(input.end(), other.begin() + static_cast<ptrdiff_t>(from), other.end());
        break;
      }
      default: input.insert(place, below(64), static_cast<uint8_t>(random_())); break;
    }
  }

  const std::vector<Bytes>& seeds_;
  std::mt19937_64 random_;
};

// What is being tried, for the words of a crash or a hang.
struct Progress {
  std::atomic<const char*> target{"none"};
  std::atomic<uint64_t> input{0}, seed{0}, total{0};
  std::atomic<bool> finished{false};
};
Progress g_progress;

void say_where(const char* what) {
  char text[256];
  const int length = snprintf(text, sizeof(text), "fuzz_driver: %s at input %llu of %s, --seed %llu\n", what,
                              static_cast<unsigned long long>(g_progress.input.load()), g_progress.target.load(),
                              static_cast<unsigned long long>(g_progress.seed.load()));
  (void)!write(STDERR_FILENO, text, static_cast<size_t>(length));
}

void on_crash(int signal) {
  say_where(strsignal(signal));
  _exit(1);
}

void watch() {
  uint64_t before = ~0ull;
  auto since = std::chrono::steady_clock::now();
  while (!g_progress.finished) {
    const uint64_t now = g_progress.total;
    if (now != before) since = std::chrono::steady_clock::now();
    before = now;
    if (std::chrono::steady_clock::now() - since > std::chrono::seconds(30)) {
      say_where("no progress for 30 s");
      _exit(1);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

void run(const FuzzTarget& target, uint64_t inputs, uint64_t seed) {
  const std::vector<Bytes> seeds = target.seeds();
  Mutator mutator(seeds, seed);
  g_progress.target = target.name;
  const double start = now_usec();
  for (uint64_t i = 0; i < inputs; ++i) {
    g_progress.input = i;
    target.run(mutator.next());
    ++g_progress.total;
  }
  printf("%-18s %9llu inputs in %6.2f s\n", target.name, static_cast<unsigned long long>(inputs),
         (now_usec() - start) / 1e6);
}

long descriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
}

long resident_kilobytes() {
  long size = 0, resident = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  if (file == nullptr || fscanf(file, "%ld %ld", &size, &resident) != 2) resident = 0;
  if (file != nullptr) fclose(file);
  return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

std::vector<FuzzTarget> chosen_targets(const std::string& name) {
  std::vector<FuzzTarget> targets;
  for (const auto& group : {text_targets(), socket_targets()}) {
    for (const FuzzTarget& target : group) {
      if (name.empty() || name == target.name) targets.push_back(target);
    }
  }
  return targets;
}

int fuzz(uint64_t inputs, uint64_t seed, const std::vector<FuzzTarget>& targets) {
  uint64_t weights = 0;
  for (const FuzzTarget& target : targets) weights += target.weight;
  // Once round first: what targets keep for good is there then.
  for (const FuzzTarget& target : targets) run(target, 100, seed);
  end_socket_targets();
  const long descriptors_before = descriptors(), memory_before = resident_kilobytes();
  for (const FuzzTarget& target : targets) run(target, inputs * target.weight / weights + 1, seed + 1);
  end_socket_targets();
  const long more_descriptors = descriptors() - descriptors_before;
  const long more_memory = resident_kilobytes() - memory_before;
  printf("%ld descriptors and %ld kB more than before\n", more_descriptors, more_memory);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return more_descriptors > 0 ? 1 : 0;  // sanitizers keep freed memory for a while, and report leaks themselves
#else
  return more_descriptors > 0 || more_memory > 32768 ? 1 : 0;
#endif
}

}  // namespace
}  // namespace talaria::test

int main(int count, char** arguments) {
  using namespace talaria::test;
  uint64_t inputs = 100000, seed = talaria::random_u64() % 1000000;
  std::string target;
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string option = arguments[i];
    if (option == "--inputs") inputs = strtoull(arguments[i + 1], nullptr, 10);
    if (option == "--seed") seed = strtoull(arguments[i + 1], nullptr, 10);
    if (option == "--target") target = arguments[i + 1];
  }
  const std::vector<FuzzTarget> targets = chosen_targets(target);
  if (targets.empty()) {
    fprintf(stderr, "fuzz_driver: no target is called '%s'\n", target.c_str());
    return 2;
  }
  printf("seed %llu\n", static_cast<unsigned long long>(seed));
  fflush(stdout);
  g_progress.seed = seed;
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  for (const int number : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGTRAP}) signal(number, on_crash);
#endif
  std::thread watchdog(watch);
  const int verdict = fuzz(inputs, seed, targets);
  g_progress.finished = true;
  watchdog.join();
  return verdict;
}
