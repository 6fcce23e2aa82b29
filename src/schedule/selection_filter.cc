#include "schedule/selection_filter.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/text.h"
#include "schedule/algorithm.h"

namespace talaria {
namespace {

// A word of a list: the bits it stands for. LL128 asks for packets, but without LL128 there are still those of LL.
struct Word {
  std::string name;
  uint32_t chosen, excluded;
};

constexpr uint32_t kPacketBit = 1, kBulkBit = 2;

std::vector<Word> algorithm_words() {
  std::vector<Word> words;
  uint32_t bit = 1;
  for (const Algorithm& row : algorithm_catalog()) {
    words.push_back({row.name, bit, bit});
    bit <<= 1;
  }
  for (const char* name : {"CollNetDirect", "CollNetChain", "NVLS", "NVLSTree", "PAT"}) {
    words.push_back({name, 0, 0});
  }
  return words;
}

std::vector<Word> protocol_words() {
  return {{"LL", kPacketBit, kPacketBit},    {"LL128", kPacketBit, 0},       {"Simple", kBulkBit, kBulkBit},
          {"packet", kPacketBit, kPacketBit}, {"packet128", kPacketBit, 0}, {"bulk", kBulkBit, kBulkBit}};
}

std::string names_of(const std::vector<Word>& words) {
  std::string text;
  for (const Word& word : words) text += (text.empty() ? "" : ", ") + word.name;
  return text;
}

std::string operation_names() {
  std::string text;
  for (int op = 0; op < kCollectives; ++op) text += std::string(op == 0 ? "" : ", ") + name_of(Operation{uint8_t(op)});
  return text;
}

std::optional<int> find_operation(std::string_view name) {
  for (int op = 0; op < kCollectives; ++op) {
    if (equal_ignoring_case(name, name_of(Operation{uint8_t(op)}))) return op;
  }
  return std::nullopt;
}

// One variable being read: its name for messages, its text and the words it may hold.
struct Reading {
  const char* variable;
  std::string_view text;
  std::vector<Word> words;

  Result<uint32_t> mask_of(std::string_view list) const {
    list = trimmed(list);
    const bool exclude = list.starts_with('^');
    if (exclude) list.remove_prefix(1);
    uint32_t mask = 0;
    int known = 0;
    for (const std::string& part : split(list, ',')) {
      const std::string_view name = trimmed(part);
      const auto word = std::find_if(words.begin(), words.end(),
                                     [&](const Word& row) { return equal_ignoring_case(row.name, name); });
      if (word == words.end()) {
        return fail(Code::kInvalidUsage, "{}={}: \"{}\" is not known; known are {}", variable, text, name,
                    names_of(words));
      }
      mask |= exclude ? word->excluded : word->chosen;
      ++known;
    }
    if (known == 0) return fail(Code::kInvalidUsage, "{}={}: a list is empty", variable, text);
    return exclude ? ~mask : mask;
  }

  // Calls apply(operation, mask, named) for each list, in order.
  template <typename Apply>
  Status read(Apply apply) const {
    bool first = true;
    for (const std::string& entry : split(text, ';')) {
      const std::string_view list = trimmed(entry);
      const size_t colon = list.find(':');
      if (colon == std::string_view::npos) {
        if (!first) return fail(Code::kInvalidUsage, "{}={}: \"{}\" has no function: only the first list may lack one",
                                variable, text, list);
        const uint32_t mask = TRY(mask_of(list));
        for (int op = 0; op < kCollectives; ++op) apply(op, mask, false);
      } else {
        const std::string_view function = trimmed(list.substr(0, colon));
        const std::optional<int> op = find_operation(function);
        if (!op) {
          return fail(Code::kInvalidUsage, "{}={}: \"{}\" is no function; known are {}", variable, text, function,
                      operation_names());
        }
        apply(*op, TRY(mask_of(list.substr(colon + 1))), true);
      }
      first = false;
    }
    return Status();
  }
};

}  // namespace

Result<SelectionFilter> parse_selection(std::string_view algorithms, std::string_view protocols) {
  SelectionFilter filter;
  TRY((Reading{"NCCL_ALGO", algorithms, algorithm_words()}.read([&](int op, uint32_t mask, bool named) {
    filter.operations[op].algorithms = mask;
    filter.operations[op].named |= named;
  })));
  TRY((Reading{"NCCL_PROTO", protocols, protocol_words()}.read([&](int op, uint32_t mask, bool named) {
    filter.operations[op].packet = (mask & kPacketBit) != 0;
    filter.operations[op].bulk = (mask & kBulkBit) != 0;
    filter.operations[op].named |= named;
  })));
  return filter;
}

}  // namespace talaria
