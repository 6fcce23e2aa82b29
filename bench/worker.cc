#include "worker.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "fatal.h"

namespace talaria::bench {
namespace {

double now_usec() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string host_name() {
  char name[64] = "";
  gethostname(name, sizeof(name) - 1);
  return name;
}

}  // namespace

Worker::Worker(const Options& options, const Operation& operation, World& world, int thread)
    : options_(options),
      operation_(operation),
      world_(world),
      thread_(thread),
      report_(options, operation),
      checker_(operation, options.nranks(), options.seed) {
  open_ranks();
  connect();
}

Worker::~Worker() {
  for (Rank& rank : ranks_) {
    rank.device->make_current();
    check(ncclCommDestroy(rank.communicator), "ncclCommDestroy");
    rank.device->release(rank.input_memory);
    rank.device->release(rank.output_memory);
  }
  world_.barrier();  // a process that ends with wrong results must not have the others ended in the middle of this
}

void Worker::open_ranks() {
  const int gpus = visible_gpus();
  // supported() needs an element per rank and type.
  const uint64_t least = static_cast<uint64_t>(options_.nranks()) * sizeof(double);
  const size_t bytes = std::max(options_.max_bytes, least) + 2 * kGuardBytes;
  for (int i = 0; i < options_.gpus; ++i) {
    const int number = thread_ * options_.gpus + i;
    Rank rank{number, nullptr, nullptr, nullptr, nullptr};
    rank.device = gpus > 0 ? make_gpu_device(number % gpus, options_.null_stream) : make_host_device();
    rank.input_memory = rank.device->allocate(bytes);
    rank.output_memory = rank.device->allocate(bytes);
    world_.set_label(number, fmt::format("Group {:2} Pid {:6} on {:>10} {}", 0, getpid(), host_name(),
                                         rank.device->description()));
    ranks_.push_back(std::move(rank));
  }
  if (options_.graph_launches > 0 && !ranks_[0].device->has_graphs()) {
    end_process(kExitUsage, "--cudagraph: CPU ranks have no CUDA graphs");
  }
}

void Worker::connect() {
  ncclUniqueId id{};
  if (thread_ == 0) {
    ranks_[0].device->make_current();
    check(ncclGetUniqueId(&id), "ncclGetUniqueId");
  }
  id = world_.share(id, thread_);
  check(ncclGroupStart(), "ncclGroupStart");
  for (Rank& rank : ranks_) {
    rank.device->make_current();
    check(ncclCommInitRank(&rank.communicator, options_.nranks(), id, rank.number), "ncclCommInitRank");
  }
  check(ncclGroupEnd(), "ncclGroupEnd of ncclCommInitRank");
}

bool Worker::run() {
  world_.barrier();
  if (thread_ == 0) report_.header(world_, row_count());
  std::vector<const Reduction*> reductions{nullptr};
  if (operation_.reduces) reductions = options_.reductions;
  std::vector<int> roots{-1};
  if (operation_.rooted) roots = options_.roots;
  for (const ElementType* type : options_.types) {
    for (const Reduction* reduction : reductions) {
      for (const int root : roots) sweep({type, reduction, root, {}});
    }
  }
  if (thread_ == 0) report_.summary(world_);
  world_.barrier();
  return report_.all_right();
}

uint64_t Worker::row_count() const {
  uint64_t sizes = 0;
  for (uint64_t bytes = options_.min_bytes; bytes <= options_.max_bytes; bytes = options_.next_size(bytes)) ++sizes;
  return sizes * options_.types.size() * (operation_.reduces ? options_.reductions.size() : 1) *
         (operation_.rooted ? options_.roots.size() : 1);
}

ncclResult_t Worker::take_reduction(const Case& combination) {
  if (combination.reduction == nullptr) return ncclSuccess;
  const DataSet data(*combination.type, combination.reduction, options_.nranks(), options_.seed);
  for (Rank& rank : ranks_) {
    rank.reduction = combination.reduction->op;
    if (rank.reduction != kMulSum) continue;
    alignas(8) std::byte scalar[8];
    data.scalar(rank.number, scalar);
    const ncclResult_t made = ncclRedOpCreatePreMulSum(&rank.reduction, scalar, combination.type->type,
                                                       ncclScalarHostImmediate, rank.communicator);
    if (made == ncclSuccess) continue;
    rank.reduction = ncclSum;  // nothing to drop
    return made;
  }
  return ncclSuccess;
}

void Worker::drop_reduction(const Case& combination) {
  if (combination.reduction == nullptr || combination.reduction->op != kMulSum) return;
  for (Rank& rank : ranks_) {
    if (rank.reduction != ncclSum) check(ncclRedOpDestroy(rank.reduction, rank.communicator), "ncclRedOpDestroy");
    rank.reduction = ncclSum;
  }
}

Case Worker::sized(const Case& combination, uint64_t bytes) const {
  Case row = combination;
  row.counts = operation_.counts(bytes / row.type->bytes, options_.nranks());
  return row;
}

// With "all" types or reductions, those that the library refuses are left out. It refuses on every rank alike.
bool Worker::supported(const Case& combination) {
  const Case row = sized(combination, static_cast<uint64_t>(options_.nranks()) * combination.type->bytes);
  ncclResult_t result = take_reduction(row);
  if (!options_.several_types) {
    check(result, "ncclRedOpCreatePreMulSum");
    return true;
  }
  if (result == ncclSuccess) result = issue(row, false, 1);
  if (result == ncclSuccess) wait();
  if (result == ncclSuccess) return true;
  if (result != ncclInvalidUsage && result != ncclInvalidArgument) check(result, operation_.name);
  if (thread_ == 0) report_.skipped(row, ncclGetLastError(nullptr));
  drop_reduction(combination);
  return false;
}

void Worker::sweep(const Case& combination) {
  if (!supported(combination)) return;
  warm_up(sized(combination, options_.max_bytes));
  warm_up(sized(combination, options_.min_bytes));
  for (uint64_t bytes = options_.min_bytes; bytes <= options_.max_bytes; bytes = options_.next_size(bytes)) {
    const Case row = sized(combination, bytes);
    if (thread_ == 0) report_.starts(row);
    const Measurement out_of_place = measure(row, false);
    const Measurement in_place = measure(row, true);
    if (thread_ == 0) report_.row(row, out_of_place, in_place);
  }
  drop_reduction(combination);
}

void Worker::warm_up(const Case& row) {
  checker_.prepare(ranks_, row, false);
  for (int i = 0; i < options_.warmup_iterations; ++i) check(issue(row, false, options_.aggregate), operation_.name);
  wait();
}

ncclResult_t Worker::issue(const Case& row, bool in_place, int operations) {
  const bool grouped = ranks_.size() > 1 || operations > 1;
  ncclResult_t result = ncclSuccess;
  if (grouped) check(ncclGroupStart(), "ncclGroupStart");
  for (int i = 0; i < operations; ++i) {
    for (const Rank& rank : ranks_) {
      if (ranks_.size() > 1) rank.device->make_current();
      const Place place = place_of(rank, row, options_.nranks());
      const Buffers buffers = buffers_of(rank, operation_, place, row, in_place);
      const Call call{buffers.input,      buffers.output,
                      row.type->type,     rank.reduction,
                      rank.communicator,  rank.device->stream()};
      const ncclResult_t issued = operation_.call(call, place);
      if (result == ncclSuccess) result = issued;
    }
  }
  if (!grouped) return result;
  const ncclResult_t ended = ncclGroupEnd();
  return result != ncclSuccess ? result : ended;
}

void Worker::iterate(const Case& row, bool in_place) {
  for (int i = 0; i < options_.iterations; ++i) {
    check(issue(row, in_place, options_.aggregate), operation_.name);
    if (options_.blocking) wait();
  }
}

// Records what `work` issues as each rank's graph.
void Worker::capture(const std::function<void()>& work) {
  for (Rank& rank : ranks_) rank.device->drop_graph();
  for (Rank& rank : ranks_) rank.device->begin_capture();
  work();
  for (Rank& rank : ranks_) rank.device->end_capture();
  for (Rank& rank : ranks_) rank.device->make_graph();
}

void Worker::launch_graphs(int times) {
  for (int i = 0; i < times; ++i) {
    for (Rank& rank : ranks_) rank.device->launch_graph();
  }
}

void Worker::wait() {
  for (Rank& rank : ranks_) wait_for(rank);
}

// Polls, because that notices the end sooner than a blocking wait, and looks after the communicator meanwhile.
void Worker::wait_for(Rank& rank) {
  constexpr uint64_t kLooksPerHealthCheck = 4096;
  for (uint64_t look = 1; !rank.device->idle(); ++look) {
    if (look % kLooksPerHealthCheck != 0) continue;
    ncclResult_t state = ncclSuccess;
    check(ncclCommGetAsyncError(rank.communicator, &state), "ncclCommGetAsyncError");
    check(state, operation_.name);
  }
}

Measurement Worker::measure(const Case& row, bool in_place) {
  Measurement measurement{world_.combine(time(row, in_place), options_.average, thread_), std::nullopt};
  // As in nccl-tests, operations that cannot work in place have no verdict in that column.
  if (options_.checks == 0 || (in_place && !operation_.in_place)) return measurement;
  uint64_t wrong = 0;
  for (int i = 0; i < options_.checks; ++i) wrong += check_results(row, in_place);
  measurement.wrong = world_.sum(wrong, thread_);
  return measurement;
}

// Microseconds per operation.
double Worker::time(const Case& row, bool in_place) {
  checker_.prepare(ranks_, row, in_place);
  world_.barrier();
  check(issue(row, in_place, options_.aggregate), operation_.name);
  wait();
  const bool graphs = options_.graph_launches > 0;
  if (graphs) {
    capture([&] { iterate(row, in_place); });
    launch_graphs(1);
    wait();
  }
  world_.barrier();
  const double start = now_usec();
  if (graphs) {
    launch_graphs(options_.graph_launches);
  } else {
    iterate(row, in_place);
  }
  const double issued = now_usec();
  wait();
  const double elapsed = (options_.report_cpu_time ? issued : now_usec()) - start;
  return elapsed / options_.iterations / options_.aggregate / (graphs ? options_.graph_launches : 1);
}

// Runs the operation once on fresh data, in a graph if graphs are measured.
uint64_t Worker::check_results(const Case& row, bool in_place) {
  checker_.prepare(ranks_, row, in_place);
  world_.barrier();
  const auto once = [&] { check(issue(row, in_place, 1), operation_.name); };
  if (options_.graph_launches > 0) {
    capture(once);
    launch_graphs(1);
  } else {
    once();
  }
  wait();
  world_.barrier();
  return checker_.count_wrong(ranks_, row, in_place);
}

}  // namespace talaria::bench
