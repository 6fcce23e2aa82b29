// Writes docs/environment.md to standard output, from the rows of base/config.cc.
#include <fmt/core.h>

#include <string>
#include <variant>

#include "base/config.h"

namespace {

const char* agreed_text(talaria::Agreed agreed) {
  switch (agreed) {
    case talaria::Agreed::kEqual: return "; must be equal on all ranks";
    case talaria::Agreed::kLeast: return "; the least of all ranks counts";
    case talaria::Agreed::kMost: return "; the most of all ranks counts";
    default: return "";
  }
}

// A cell of a Markdown table must not hold a bare bar.
std::string cell(const std::string& text) {
  std::string escaped;
  for (char c : text) {
    if (c == '|') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

}  // namespace

int main() {
  fmt::print(
      "# Environment variables\n\n"
      "<!-- Made by tools/print_environment.cc from src/base/config.cc. Change the table there, then run\n"
      "     build/<preset>/bin/print_environment > docs/environment.md -->\n\n"
      "Variables are read when a communicator or a unique id is made, those of the log at its first line, none when "
      "the library\nis loaded. A number that does not parse counts as unset.\n\n"
      "| variable | type | default | meaning |\n"
      "| --- | --- | --- | --- |\n");
  for (const talaria::ConfigRow& row : talaria::config_rows()) {
    const bool number = std::holds_alternative<int64_t talaria::Config::*>(row.field);
    const std::string value = row.default_text;
    fmt::print("| `{}` | {} | {} | {}{} |\n", row.name, number ? "number" : "text", value.empty() ? "unset" : value,
               cell(row.help), agreed_text(row.agreed));
  }
  return 0;
}
