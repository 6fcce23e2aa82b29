#include "driver.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>

namespace talaria::compare {
namespace {

constexpr std::array<const char*, 5> kOperationNames = {"all_reduce", "all_gather", "reduce_scatter", "broadcast",
                                                        "alltoall"};
constexpr size_t kPage = 4096;

double now_usec() {
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration<double, std::micro>(Clock::now().time_since_epoch()).count();
}

Operation operation_named(const std::string& name) {
  const auto* const found = std::find(kOperationNames.begin(), kOperationNames.end(), name);
  require(found != kOperationNames.end(), "unknown operation " + name);
  return static_cast<Operation>(std::distance(kOperationNames.begin(), found));
}

// Small integers, so that sums are exact in any order; different for every rank.
float value_of(int rank, size_t index) { return static_cast<float>((index * 7 + static_cast<size_t>(rank) * 13) % 61); }

float sum_of(int nranks, size_t index) {
  float sum = 0;
  for (int rank = 0; rank < nranks; ++rank) sum += value_of(rank, index);
  return sum;
}

// What a right library leaves at `index` of this rank's output.
float expected(const Call& call, int rank, int nranks, size_t index) {
  const auto source = static_cast<int>(index / call.block);
  const auto own = static_cast<size_t>(rank);
  switch (call.operation) {
    case Operation::kAllReduce: return sum_of(nranks, index);
    case Operation::kAllGather: return value_of(source, index % call.block);
    case Operation::kReduceScatter: return sum_of(nranks, own * call.block + index);
    case Operation::kBroadcast: return value_of(kRoot, index);
    case Operation::kAllToAll: return value_of(source, own * call.block + index % call.block);
  }
  return 0;
}

struct Free {
  void operator()(float* memory) const { std::free(memory); }
};
using Buffer = std::unique_ptr<float, Free>;

Buffer touched_memory(size_t bytes) {
  void* const memory = std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage);
  require(memory != nullptr, "no memory for a buffer of " + std::to_string(bytes) + " bytes");
  std::memset(memory, 0, bytes);
  return Buffer(static_cast<float*>(memory));
}

// The one who asks for measurements. The connection's end is this process's end.
class Conductor {
 public:
  explicit Conductor(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    require(path.size() < sizeof(address.sun_path), "the path of the socket is too long: " + path);
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    socket_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    require(connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0,
            "nobody listens at " + path);
    requests_ = fdopen(socket_, "r");
    require(requests_ != nullptr, "fdopen failed");
  }
  ~Conductor() { std::fclose(requests_); }
  Conductor(const Conductor&) = delete;
  Conductor& operator=(const Conductor&) = delete;
  bool read(std::array<char, 256>& line) { return std::fgets(line.data(), line.size(), requests_) != nullptr; }
  void say(const std::string& line) {
    const std::string text = line + "\n";
    require(send(socket_, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size()),
            "nobody waits for the answer");
  }

 private:
  int socket_;
  FILE* requests_;
};

// One rank's buffers and measurements.
class Rank {
 public:
  Rank(Library& library, Meeting& meeting, int nranks, size_t max_bytes)
      : library_(library), meeting_(meeting), nranks_(nranks), capacity_(max_bytes / sizeof(float)),
        input_(touched_memory(max_bytes)), output_(touched_memory(max_bytes)) {}

  // "all_reduce ring 1024 20 1": operation, algorithm, bytes, calls, whether one call is checked. Answers
  // "<usec per call> <wrong elements>".
  std::string measure(const char* line) {
    std::array<char, 32> operation{};
    std::array<char, 32> algorithm{};
    size_t bytes = 0;
    int calls = 0, checked = 0;
    require(std::sscanf(line, "%31s %31s %zu %d %d", operation.data(), algorithm.data(), &bytes, &calls, &checked) == 5,
            std::string("not a request: ") + line);
    const Call call = call_of(operation_named(operation.data()), algorithm.data(), bytes);
    size_t wrong = 0;
    if (checked != 0) wrong = count_wrong(call);
    return std::to_string(time(call, calls)) + " " + std::to_string(wrong);
  }

 private:
  // `bytes` is the larger of a rank's two buffers; every block holds at least one element.
  Call call_of(Operation operation, const std::string& algorithm, size_t bytes) const {
    const size_t count = bytes / sizeof(float);
    const bool split = operation != Operation::kAllReduce && operation != Operation::kBroadcast;
    const auto nranks = static_cast<size_t>(nranks_);
    const size_t block = split ? std::max<size_t>(1, count / nranks) : count;
    const size_t whole = split ? block * nranks : block;
    require(whole <= capacity_, "the buffers are too small for " + std::to_string(bytes) + " bytes");
    float* const input = operation == Operation::kBroadcast ? output_.get() : input_.get();
    return {operation, algorithm, input, output_.get(), block,
            operation == Operation::kAllGather ? block : whole, operation == Operation::kReduceScatter ? block : whole};
  }

  void fill(const Call& call) {
    const bool source = call.operation != Operation::kBroadcast || library_.rank() == kRoot;
    std::fill_n(call.output, call.output_count, -1.0F);
    for (size_t i = 0; source && i < call.input_count; ++i) call.input[i] = value_of(library_.rank(), i);
  }

  size_t count_wrong(const Call& call) {
    const std::function<void()> work = library_.prepare(call);
    fill(call);
    meeting_.barrier();
    work();
    meeting_.barrier();
    size_t wrong = 0;
    for (size_t i = 0; i < call.output_count; ++i) {
      wrong += call.output[i] == expected(call, library_.rank(), nranks_, i) ? 0 : 1;
    }
    return wrong;
  }

  double time(const Call& call, int calls) {
    constexpr int kCallsPerWarmUpCall = 10;
    const std::function<void()> work = library_.prepare(call);
    meeting_.barrier();
    for (int i = 0; i <= calls / kCallsPerWarmUpCall; ++i) work();
    meeting_.barrier();
    const double start = now_usec();
    for (int i = 0; i < calls; ++i) work();
    const double elapsed = now_usec() - start;
    meeting_.barrier();  // `work` may own memory that the others still read
    return elapsed / calls;
  }

  Library& library_;
  Meeting& meeting_;
  int nranks_;
  size_t capacity_;
  Buffer input_;
  Buffer output_;
};

}  // namespace

struct Meeting::Shared {
  std::atomic<int> arrived;
  std::atomic<int> round;
  std::array<char, 256> note;
};

Meeting::Meeting(const std::string& file, int nranks) : nranks_(nranks) {
  const int descriptor = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  require(descriptor >= 0 && ftruncate(descriptor, sizeof(Shared)) == 0, "cannot make " + file);
  void* const memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  require(memory != MAP_FAILED, "cannot map " + file);
  close(descriptor);
  shared_ = static_cast<Shared*>(memory);  // a new file is zeros: a barrier at which nobody has arrived
}

// Yields all the time: there may be fewer cores than ranks, and what follows is the same for every library.
void Meeting::barrier() {
  const int round = shared_->round.load();
  if (shared_->arrived.fetch_add(1) + 1 == nranks_) {
    shared_->arrived.store(0);
    shared_->round.store(round + 1);
    return;
  }
  while (shared_->round.load() == round) sched_yield();
}

std::array<char, 256>& Meeting::note() { return shared_->note; }

void require(bool right, const std::string& what) {
  if (right) return;
  std::fprintf(stderr, "compare driver: %s\n", what.c_str());
  std::_Exit(1);
}

int run_driver(int argc, char** argv, Library& library) {
  require(argc == 4 || argc == 5, "usage: driver FOLDER NRANKS MAX_BYTES [RANK]");
  const std::string folder = argv[1];
  const int nranks = std::atoi(argv[2]);
  const size_t max_bytes = std::strtoull(argv[3], nullptr, 10);
  Meeting meeting(folder + "/meeting", nranks);
  meeting.barrier();
  const double start = now_usec();
  library.connect(meeting, folder, argc == 5 ? std::atoi(argv[4]) : -1, nranks);
  const double connected = now_usec() - start;
  Conductor conductor(folder + "/socket");
  Rank rank(library, meeting, nranks, max_bytes);
  conductor.say(std::to_string(library.rank()) + " " + std::to_string(connected) + " " + library.version());
  std::array<char, 256> line{};
  while (conductor.read(line)) conductor.say(rank.measure(line.data()));
  return 0;
}

}  // namespace talaria::compare
