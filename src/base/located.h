// A format string that remembers where it was written, for the file:line of a WARN line.
#pragma once

#include <fmt/core.h>

#include <type_traits>

namespace talaria {

struct CodePlace {
  const char* file = "";  // as the compiler was given it
  int line = 0;
};

template <typename... Args>
struct LocatedFormat {
  template <typename Text>
  consteval LocatedFormat(const Text& text, const char* file = __builtin_FILE(), int line = __builtin_LINE())
      : format(text), place{file, line} {}  // NOLINT(google-explicit-constructor)
  fmt::format_string<Args...> format;
  CodePlace place;
};

// Not deduced from the format: the arguments alone say what Args are.
template <typename... Args>
using Located = LocatedFormat<std::type_identity_t<Args>...>;

}  // namespace talaria
