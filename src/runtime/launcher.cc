#include "runtime/launcher.h"

#include <algorithm>

#include "engine/device/fused/fused_path.h"
#include "engine/device/kernels.h"

namespace talaria {
namespace {

using Part = Launcher::Part;

// Parts on one GPU and one stream, launched together.
struct PartGroup {
  Part* parts[kMaxBatchEntries];
  uint32_t size = 0;

  std::span<Part* const> view() const { return {parts, size}; }
  const PrimaryContext& context() const { return *parts[0]->state->context; }
  const StreamState& stream() const { return parts[0]->stream; }
};

// The parts of one rank must not overtake each other, nor run side by side.
bool waits_for_earlier(std::span<const Part> parts, size_t index, const PartGroup& group) {
  const DeviceState* state = parts[index].state;
  const auto blocks = [&](const Part& part) { return part.state == state && !part.taken; };
  return std::ranges::any_of(parts.first(index), blocks) ||
         std::ranges::any_of(group.view(), [&](const Part* part) { return part->state == state; });
}

Result<PartGroup> take_group(std::span<Part> parts, size_t first) {
  PartGroup group;
  const Part& leader = parts[first];
  for (size_t i = first; i < parts.size(); ++i) {
    Part& part = parts[i];
    const bool same_place =
        part.state->context->ordinal() == leader.state->context->ordinal() && part.stream.id == leader.stream.id;
    if (part.taken || !same_place || waits_for_earlier(parts, i, group)) continue;
    if (group.size == kMaxBatchEntries) {
      if (part.state->shared == nullptr) break;
      return fail(Code::kInvalidUsage, "more than {} ranks of this process share device {} and a stream in one group",
                  kMaxBatchEntries, part.state->context->ordinal());
    }
    part.taken = true;
    group.parts[group.size++] = &part;
  }
  return group;
}

// Refuses collectives of one communicator that would wait for each other on this stream.
Status check_shared(const PartGroup& group) {
  for (uint32_t i = 0; i < group.size; ++i) {
    SharedGpu* shared = group.parts[i]->state->shared.get();
    const auto same = [&](const Part* part) { return part->state->shared.get() == shared; };
    if (shared == nullptr || std::any_of(group.parts, group.parts + i, same)) continue;
    uint32_t ranks[kMaxBatchEntries];
    uint32_t count = 0;
    for (const Part* part : group.view()) {
      if (same(part)) ranks[count++] = part->state->rank;
    }
    const uint64_t collectives =
        std::ranges::count_if(group.parts[i]->works, [](const Work& work) { return work.join != 0; });
    TRY(shared->enqueue({ranks, count}, group.stream().id, collectives));
  }
  return Status();
}

// Number of works from part.next on that `kernel` can run.
uint32_t run_length(const Part& part, int kernel) {
  size_t end = part.next;
  while (end < part.works.size() && find_kernel(key_of(part.works[end])) == kernel) ++end;
  return static_cast<uint32_t>(end - part.next);
}

struct LaunchShape {
  uint32_t works = 0;
  uint32_t blocks = 0;
  uint64_t piece_bytes = 0;
};

// Which works each part contributes, and how many blocks that takes. Leaves `next` where it is.
LaunchShape lay_out(const PartGroup& group, int kernel, Batch& batch) {
  LaunchShape shape;
  for (const Part* part : group.view()) {
    const uint32_t works = run_length(*part, kernel);
    if (works == 0) continue;
    BatchEntry& entry = batch.entry[batch.entries++];
    entry = BatchEntry{reinterpret_cast<const DeviceComm*>(part->state->comm), shape.works, works, shape.blocks, 0};
    for (const Work& work : part->works.subspan(part->next, works)) {
      entry.lanes = std::max(entry.lanes, work.chunking.lanes);
      batch.streams = std::max(batch.streams, work.plan.nstreams);
      const uint64_t bytes = work.chunking.piece * bytes_of(static_cast<DataType>(work.type));
      shape.piece_bytes = std::max(shape.piece_bytes, bytes);
    }
    shape.works += works;
    shape.blocks += entry.lanes;
  }
  return shape;
}

// Writes the works, with plans in device memory, and steps over them.
Status bind_works(const PartGroup& group, int kernel, Work* out) {
  for (Part* part : group.view()) {
    const uint32_t works = run_length(*part, kernel);
    for (const Work& work : part->works.subspan(part->next, works)) {
      *out = work;
      if (part->state->fused) out->fused = static_cast<uint8_t>(fused_path_of(work));
      out->plan = TRY(part->state->plans.on_device(work.plan, part->state->upload.get()));
      ++out;
    }
    part->next += works;
  }
  return Status();
}

// Launches the next works of the group that share a kernel; false when none is left.
Result<bool> launch_next(const PartGroup& group) {
  const auto left = [](const Part* part) { return part->next < part->works.size(); };
  const auto leader = std::ranges::find_if(group.view(), left);
  if (leader == group.view().end()) return false;
  const Work& first = (*leader)->works[(*leader)->next];
  const KernelKey key = key_of(first);
  const int kernel = find_kernel(key);
  if (kernel < 0) {
    return fail(Code::kInvalidArgument, "this build has no GPU kernel for datatype {} with reduction {}", first.type,
                first.reduce);
  }
  Batch batch;
  batch.entries = 0;
  batch.streams = 1;
  batch.spilled_works = nullptr;
  const LaunchShape shape = lay_out(group, kernel, batch);
  SpillPool& pool = group.parts[0]->state->spill;
  SpillPool::Slot* slot = shape.works > kInlineWorks ? TRY(pool.acquire(shape.works)) : nullptr;
  if (slot != nullptr) batch.spilled_works = slot->device();
  TRY(bind_works(group, kernel, slot != nullptr ? slot->host() : batch.works));

  const DeviceState& state = *group.parts[0]->state;
  const uint32_t threads = batch.streams * threads_per_stream(key, batch.streams, shape.piece_bytes);
  const CUstream stream = group.stream().stream;
  void* parameters[] = {&batch};
  TRY(state.context->driver().launch_kernel(state.kernels->function(kernel), shape.blocks, 1, 1, threads, 1, 1, 0,
                                            stream, parameters, nullptr));
  if (slot != nullptr) TRY(pool.launched(*slot, stream, group.stream().capturing));
  return true;
}

Status launch_group(const PartGroup& group) {
  ContextGuard guard(group.context());
  TRY(guard.status());
  TRY(check_shared(group));
  const auto launching = LaunchGate::instance().launching();
  for (const Part* part : group.view()) TRY(part->state->order.before_launch(part->stream));
  while (TRY(launch_next(group))) {
  }
  for (const Part* part : group.view()) TRY(part->state->order.after_launch(part->stream));
  return Status();
}

}  // namespace

Status Launcher::add(DeviceState& state, CUstream stream, std::span<const Work> works) {
  if (works.empty()) return Status();
  ContextGuard guard(*state.context);
  TRY(guard.status());
  parts_.push_back(Part{&state, TRY(stream_state(state.context->driver(), stream)), works});
  return Status();
}

Status Launcher::launch_all() {
  for (size_t i = 0; i < parts_.size(); ++i) {
    if (!parts_[i].taken) TRY(launch_group(TRY(take_group(parts_, i))));
  }
  return Status();
}

}  // namespace talaria
