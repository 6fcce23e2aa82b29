// Root: the meeting point of a communicator's ranks, a state machine over poll().
//
// It seats every rank that has proven the secret, and once all are there tells each where its ring successor listens.
// Nothing that connects can block it. A conflict between invited ranks (two claim one rank, they disagree about the
// number of ranks, one leaves again) is told to the one who comes second; if the others are still not complete after a
// grace time, the rendezvous has failed and every rank is told why.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/unique.h"
#include "bootstrap/lobby.h"

namespace talaria {

// The root's answer to a seated rank, after the welcome.
struct Reply {
  int32_t code;             // Code: success, or why there is no communicator
  SocketAddress successor;  // where rank + 1 listens
  char text[480];           // the reason, NUL-terminated
};
static_assert(sizeof(Reply) == 512);

struct RootLimits {
  double grace_usec = 3e6;    // between a conflict and giving up
  double linger_usec = 60e6;  // how long a failed rendezvous explains itself to late ranks
  LobbyLimits lobby;
};

class Root {
 public:
  Root(UniqueFd listener, const Secret& secret, const RootLimits& limits = {});
  // Runs until the ranks have met, the rendezvous has failed, or `stop` (a descriptor; -1 for none) becomes readable.
  void run(int stop);

 private:
  void seat(Guest guest);
  void drop_those_who_left();
  void complain(Code code, std::string text);
  void settle_complaint();
  void introduce_all();
  void fail_all();
  int timeout_msec() const;
  bool finished() const;

  Lobby lobby_;
  const RootLimits limits_;
  std::map<uint32_t, Guest> seats_;
  uint32_t nranks_ = 0;  // 0 until the first rank has come
  Code code_ = Code::kSuccess;  // of the complaint
  std::string complaint_;       // empty: none
  double deadline_usec_ = 0;    // end of the grace; once failed, end of the lingering
  bool introduced_ = false, failed_ = false;
  uint32_t told_ = 0;  // ranks that no longer wait: they left, or know that the rendezvous has failed
};

// A root in a thread of this process. The thread blocks all signals.
class OwnedRoot {
 public:
  static Result<std::unique_ptr<OwnedRoot>> start(UniqueFd listener, const Secret& secret);
  ~OwnedRoot();  // stops the root and joins its thread
  OwnedRoot(const OwnedRoot&) = delete;
  OwnedRoot& operator=(const OwnedRoot&) = delete;

 private:
  OwnedRoot() = default;
  UniqueFd stop_;
  pthread_t thread_{};
};

// Runs a root in a detached thread, which ends with its rendezvous or with the process.
Status start_detached_root(UniqueFd listener, const Secret& secret);

}  // namespace talaria
