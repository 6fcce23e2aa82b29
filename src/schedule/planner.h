// Planner: from a Collective to a Plan with its geometry. Caches plans for the life of the communicator.
//
// Not thread-safe: one planner per communicator, used by one thread at a time. Returned plans live as long as it does.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <tuple>

#include "schedule/selector.h"

namespace talaria {

// Room that executors have for one channel.
struct ChannelRoom {
  uint32_t lanes;
  uint32_t depth;
  uint64_t slot_bytes;
};

struct Planned {
  const Plan* plan;
  Chunking chunking;
  Channel channel;
};

class Planner {
 public:
  Planner(uint32_t rank, Selection selection, const ChannelRoom (&rooms)[kChannels]);
  Result<Planned> plan(const Collective& collective);

 private:
  using Key = std::tuple<const Algorithm*, Operation, int32_t, Form>;
  Result<Planned> make(const Collective& collective);
  Result<const Plan*> cached(const Choice& choice, const Collective& collective);

  // The last answer for each of a few kinds of question: a loop of equal calls asks again and again.
  struct Recent {
    Collective question;
    Planned answer{};
  };
  static constexpr size_t kRecents = 16;
  Recent recents_[kRecents];

  uint32_t rank_;
  Selection selection_;
  ChannelRoom rooms_[kChannels];
  std::map<Key, std::unique_ptr<Plan>> plans_;
};

}  // namespace talaria
