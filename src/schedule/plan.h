// Plan: the steps of one rank for one shape of collective, symbolic in count.
//
// Built once by an Algorithm, checked by seal(), then read-only and shared between threads.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

#include "base/status.h"
#include "schedule/chunking.h"
#include "schedule/collective.h"
#include "schedule/step.h"

namespace talaria {

// How user buffers are reached: only through inboxes, or in place where their owner's ready word allows it.
enum class Form : uint8_t { kStaged, kDirect };

// Everything a plan depends on.
struct Shape {
  Operation operation;
  int32_t root;  // where is_rooted() the root, peer of Send / Recv, else 0
  uint32_t rank;
  uint32_t nranks;
  Form form;
};

// The refs given to Plan::add; only looked at during the call.
class RefList {
 public:
  RefList(std::initializer_list<Ref> refs) : size_(refs.size()) { data_ = refs.begin(); }
  // NOLINTNEXTLINE(google-explicit-constructor)
  RefList(const std::vector<Ref>& refs) : data_(refs.data()), size_(refs.size()) {}
  const Ref* begin() const { return data_; }
  const Ref* end() const { return data_ + size_; }
  size_t size() const { return size_; }

 private:
  const Ref* data_;
  size_t size_;
};

class Plan {
 public:
  explicit Plan(const Shape& shape, uint32_t blocks) : shape_(shape), blocks_(blocks) {}

  // Building: streams are filled in order; the steps of a stream come prologue first, then body, then epilogue.
  enum class Phase : uint8_t { kPrologue, kBody, kEpilogue };
  void begin_stream(Condition condition = Condition::kAlways);
  void add(uint32_t block, const RefList& sources, const RefList& sinks, uint8_t flags = 0, Phase phase = Phase::kBody);
  // Derives the peers' uses; fails (kInternal) if a FIFO has two producing or two consuming streams.
  Status seal();

  const Shape& shape() const { return shape_; }
  uint32_t blocks() const { return blocks_; }
  // Slots per FIFO the plan needs to make progress. A ring needs two: each of its steps holds a message while it waits
  // for a free slot, and with one slot the whole cycle would wait.
  uint32_t min_depth() const { return min_depth_; }
  void set_min_depth(uint32_t depth) { min_depth_ = depth; }
  const std::vector<Step>& steps() const { return steps_; }
  const std::vector<Ref>& refs() const { return refs_; }
  const std::vector<StreamView>& streams() const { return streams_; }
  const std::vector<PeerUse>& peers() const { return peers_; }
  // The plan as executors read it. Valid while this Plan lives and is not changed.
  PlanView view() const;

  // For the simulator's mutation tests only: the same plan with other parts, not sealed again.
  void replace_refs(std::vector<Ref> refs, std::vector<Step> steps) {
    refs_ = std::move(refs), steps_ = std::move(steps);
  }
  void replace_peers(std::vector<PeerUse> peers) { peers_ = std::move(peers); }

 private:
  Shape shape_;
  uint32_t blocks_;
  uint32_t min_depth_ = 1;
  std::vector<Step> steps_;
  std::vector<Ref> refs_;
  std::vector<StreamView> streams_;
  std::vector<PeerUse> peers_;
};

}  // namespace talaria
