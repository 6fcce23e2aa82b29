// Names of variables beside those that this library reads: NCCL's, which are accepted without effect, and names that
// others use with NCCL's prefix. What is in neither is a misspelling.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace talaria {

// Blank-separated names; one that ends with * stands for all that begin like it.
struct VariableGroup {
  const char* subject;
  const char* names;
};
std::span<const VariableGroup> variables_without_effect();

// The names of a group, without those that the table in base/config.cc has.
std::vector<std::string> names_of(const VariableGroup& group);

// Read by this library, or accepted without effect.
bool is_known_variable(std::string_view name);

// The known name with the fewest letters to change, insert or delete; "" when none is near.
std::string nearest_variable(std::string_view name);

}  // namespace talaria
