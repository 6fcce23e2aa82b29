// Machine: N virtual ranks on one thread, one action at a time. The executor's rules are in machine_step.cc, the ends
// of operations and launches in machine.cc, the choice of the next action in scheduler.cc.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/memory.h"
#include "sim/scenario.h"

namespace talaria::sim {

enum class Progress : uint8_t { kMoved, kBlocked, kFinished };

// A step stream of one lane of one rank, and where it is.
struct Stream {
  uint32_t rank, lane, index;
  ThreadId thread;
  VectorClock clock;
  // Position in its work.
  bool active = false;
  size_t next_op = 0;  // point-to-point: index in the launch
  uint32_t op = 0;
  uint64_t position = 0, length = 0;  // in steps, over all rounds
  uint32_t stage = 0;                 // action within the step
  std::vector<bool> direct;           // per Ref of the step: the peer's buffer is touched in place
  std::vector<std::byte> value;       // what the step computed
  uint32_t waits_for = 0;             // the peer of the wait that blocks it
};

struct Lane {
  bool running = false;   // between begin and end of an operation (or of a list of point-to-point operations)
  bool finished = true;   // nothing left in this launch
  size_t next_op = 0;     // collectives: index in the launch
  uint32_t open_streams = 0;
  uint64_t uses = 0;      // operations that used ready words
  StoreBuffer stores;
};

struct RankState {
  size_t launch = 0;
  bool in_launch = false;
  bool done = false;
  uint32_t open_lanes = 0;
  VectorClock user;
};

class Machine {
 public:
  Machine(const Scenario& scenario, uint64_t seed);
  Report run();

 private:
  // --- scheduler.cc: actors are streams, then lanes, then ranks.
  uint32_t lane_actor(uint32_t rank, uint32_t lane) const { return streams_count() + rank * scenario_.lanes + lane; }
  uint32_t rank_actor(uint32_t rank) const { return streams_count() + lanes_count() + rank; }
  uint32_t lanes_count() const { return scenario_.nranks * scenario_.lanes; }
  uint32_t streams_count() const { return lanes_count() * kMaxStreams; }
  uint32_t rank_of_actor(uint32_t actor) const;
  void wake(uint32_t actor);
  void sleep(uint32_t actor);
  void wake_parked(uint32_t rank);
  uint32_t pick_actor();
  void deliver();
  void act(uint32_t actor);
  void kill(uint32_t rank);
  Report verdict_at_rest();
  bool all_wait_for(uint32_t dead) const;

  // --- machine.cc
  void act_rank(uint32_t rank);
  void act_lane(uint32_t rank, uint32_t lane);
  void begin_launch(uint32_t rank);
  void end_launch(uint32_t rank);
  void begin_op(Stream& leader, uint32_t op);
  void end_op(Stream& leader, uint32_t op);
  bool enter(Stream& stream, uint32_t op);
  void finish_stream(Stream& stream);
  void act_stream(Stream& stream);
  const Launch& launch_of(uint32_t rank) const { return scenario_.programs[rank][ranks_[rank].launch]; }
  bool is_direct(uint32_t op, uint32_t rank, uint32_t lane, bool output) const;

  // --- machine_step.cc
  Progress advance(Stream& stream);
  Progress wait(Stream& stream, const Ref& ref, uint32_t k, bool source);
  Progress wait_message(Stream& stream, const Ref& ref);
  Progress wait_credit(Stream& stream, const Ref& ref);
  bool wait_ready(Stream& stream, const Ref& ref, bool output);
  uint64_t scalar_of(const Stream& stream, const Ref& ref);
  void compute(Stream& stream, const Step& step);
  void read_slot(Stream& stream, const Ref& ref, uint64_t bytes, std::vector<std::byte>& out);
  void write(Stream& stream, const Step& step, const Ref& ref, bool direct);
  bool copies_onto_itself(const Stream& stream, const Step& step);
  void write_slot(Stream& stream, const Ref& ref);
  void write_direct(Stream& stream, const Ref& ref, const ByteRange& range);
  void publish(Stream& stream, const Ref& ref, bool direct);
  void tell_scalar(Stream& stream, const Ref& ref, ReadyWord& word);
  void release(Stream& stream, const Ref& ref, bool direct);
  void check(const std::optional<Verdict>& verdict, const Stream& stream, const char* what);

  const Plan& plan_of(const Stream& stream) const { return *scenario_.ops[stream.op].plans[stream.rank]; }
  const Step& step_of(const Stream& stream, uint32_t* round) const;
  Piece piece_for(const Stream& stream, const Step& step) const;
  Fifo& fifo(uint32_t producer, uint32_t consumer, const Stream& stream, uint32_t which);
  Lane& lane_of(const Stream& stream) { return lanes_[stream.rank * scenario_.lanes + stream.lane]; }
  Arena& arena(uint32_t op, uint32_t rank) { return arenas_[op * scenario_.nranks + rank]; }
  ReadyWord& ready(uint32_t from, uint32_t to, uint32_t lane, bool output);
  Word& done(uint32_t from, uint32_t to, uint32_t lane);
  void issue_word(Stream& stream, Word& word, uint64_t value, uint32_t rank, bool release);
  // The stream's clock for a store that others will read; what it does afterwards is not covered.
  VectorClock published_clock(Stream& stream);
  void fault(Verdict verdict, const Stream* stream, const std::string& what);

  const Scenario& scenario_;
  Random random_;
  std::vector<Stream> streams_;
  std::vector<Lane> lanes_;
  std::vector<RankState> ranks_;
  std::vector<Arena> arenas_;
  std::map<uint64_t, std::unique_ptr<Fifo>> fifos_;
  std::vector<ReadyWord> ready_;
  std::vector<Word> done_;
  std::vector<uint8_t> decisions_;  // per (op, rank, lane): bit 0 input direct, bit 1 output direct
  std::vector<bool> uses_ready_;    // per (op, rank)

  std::vector<uint32_t> runnable_;
  std::vector<uint32_t> place_;  // position of an actor in runnable_ + 1
  std::vector<bool> slow_;       // per rank
  uint32_t eagerness_;           // percent of actions that are deliveries, when both are possible
  bool flags_first_;             // flags overtake payload wherever they may
  std::optional<uint32_t> dead_;
  uint64_t actions_ = 0;
  std::optional<Report> fault_;
};

}  // namespace talaria::sim
