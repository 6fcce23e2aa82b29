// InitJob: a communicator to be made at the end of a group, or something that the ranks of one do together over their
// out-of-band channel.
//
// Jobs run side by side, each on a thread of its own; those of one parent take turns, in the order of the calls, which
// is the same on all ranks.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "runtime/communicator.h"

namespace talaria {

struct InitJob {
  Communicator** out;                  // null where none is made
  std::unique_ptr<Communicator> comm;  // null: done with `parent` itself
  // Makes it ready, or leaves it as it is where the rank gets none. Waits for other ranks until `comm` is aborted.
  std::function<Status(Communicator&)> make;
  Communicator* parent = nullptr;  // null: made by unique ids
  bool wanted = true;              // false: this rank only helps the others, and gets none

  Communicator& subject() const { return comm == nullptr ? *parent : *comm; }

  // Does the caller wait? The mode of a child counts from its birth on.
  bool blocking() const { return parent == nullptr ? comm->blocking() : parent->blocking(); }
};

// All at once, until done. One that fails ends the others. `*out` is the communicator, null on any failure.
Status run_inits(std::vector<InitJob> jobs);

// All in the background: kInProgress. `*out` is written before this returns, and its communicator is in progress until
// made; so is the parent, to which a failure of its child is told, too. None ends the others.
Status start_inits(std::vector<InitJob> jobs);

}  // namespace talaria
