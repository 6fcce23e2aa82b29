// SelectionFilter: what NCCL_ALGO and NCCL_PROTO leave to choose from, as masks. Pure.
//
// Syntax of both, as in NCCL 2.24: `list`, or `list;function:list;function:list`, where the first list is for every
// function. A list is `word,word`, only these, or `^word,word`, all but these. Case does not matter, nor do blanks
// around words. Words of NCCL that name nothing here (NVLS, PAT, ...) are known and never chosen.
//
// A list for every function is meant for the operations that NCCL chooses algorithms for. AlltoAll, Gather and Scatter
// follow it as far as it leaves them anything; a list that names them is obeyed to the letter.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "schedule/collective.h"

namespace talaria {

struct OperationFilter {
  uint32_t algorithms = ~0u;  // bit i: row i of the catalog may be chosen
  bool packet = true, bulk = true;
  bool named = false;  // a list names this operation
};

struct SelectionFilter {
  OperationFilter operations[kCollectives];
};

// Empty texts restrict nothing. kInvalidUsage naming the variable, the word and the words that are known.
Result<SelectionFilter> parse_selection(std::string_view algorithms, std::string_view protocols);

}  // namespace talaria
