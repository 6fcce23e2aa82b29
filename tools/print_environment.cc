// Writes docs/environment.md to standard output, from the rows of base/config.cc.
#include <fmt/core.h>

#include <string>
#include <variant>

#include "base/config.h"
#include "base/known_variables.h"

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
      "the library\nis loaded. What the environment does not set may stand in `/etc/nccl.conf`, or in the file that "
      "`NCCL_CONF_FILE` names,\nelse `~/.nccl.conf`, which win over the former: lines `NAME=value`, `#` begins a "
      "comment line. Numbers are decimal, or\nhexadecimal with `0x`; one that does not parse counts as unset. With "
      "`NCCL_DEBUG=WARN` or more such numbers, malformed\nlines and names with `NCCL_` or `TALARIA_` that nobody "
      "knows are each reported once, the latter with the nearest known\nname; `NCCL_DEBUG=INFO` lists what is set, "
      "and by whom.\n\n"
      "| variable | type | default | meaning |\n"
      "| --- | --- | --- | --- |\n");
  for (const talaria::ConfigRow& row : talaria::config_rows()) {
    const bool number = std::holds_alternative<int64_t talaria::Config::*>(row.field);
    const std::string value = row.default_text;
    fmt::print("| `{}` | {} | {} | {}{} |\n", row.name, number ? "number" : "text", value.empty() ? "unset" : value,
               cell(row.help), agreed_text(row.agreed));
  }
  fmt::print(
      "\n## Without effect\n\n"
      "Variables of NCCL that are accepted and change nothing here, at least so far; `*` stands for any ending.\n\n"
      "| subject | variables |\n| --- | --- |\n");
  for (const talaria::VariableGroup& group : talaria::variables_without_effect()) {
    std::string names;
    for (const std::string& name : talaria::names_of(group)) names += (names.empty() ? "`" : ", `") + name + "`";
    fmt::print("| {} | {} |\n", group.subject, names);
  }
  return 0;
}
