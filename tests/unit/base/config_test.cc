#include "base/config.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "unit/base/environment.h"

namespace talaria {
namespace {

using test::ScopedVariable;

TEST(Config, EveryRowReadsItsVariableIntoItsField) {
  ASSERT_GT(config_rows().size(), 10u);
  for (const ConfigRow& row : config_rows()) {
    const ScopedVariable variable(row.name, "4711");
    const Config config = read_config();
    if (const auto* text = std::get_if<std::string Config::*>(&row.field)) EXPECT_EQ(config.*(*text), "4711");
    else EXPECT_EQ(config.*std::get<int64_t Config::*>(row.field), 4711) << row.name;
  }
}

TEST(Config, EveryRowHasADefaultAndHelp) {
  std::set<std::string> names;
  for (const ConfigRow& row : config_rows()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name << " stands twice";
    EXPECT_GT(std::string(row.help).size(), 10u) << row.name;
    const ScopedVariable unset(row.name, nullptr);
    const Config config = read_config();
    if (const auto* text = std::get_if<std::string Config::*>(&row.field)) EXPECT_EQ(config.*(*text), row.default_text);
    else EXPECT_EQ(config.*std::get<int64_t Config::*>(row.field), std::stoll(row.default_text)) << row.name;
  }
}

TEST(Config, NumbersThatDoNotParseCountAsUnset) {
  for (const char* text : {"", "abc", "12x", "99999999999999999999", "1 2"}) {
    const ScopedVariable variable("NCCL_SOCKET_RETRY_CNT", text);
    EXPECT_EQ(read_config().socket_retry_count, 34) << "'" << text << "'";
  }
}

TEST(Config, NumbersMayBeNegativeOrHexadecimal) {
  const ScopedVariable negative("NCCL_SOCKET_RETRY_CNT", "-2");
  const ScopedVariable hexadecimal("NCCL_SOCKET_RETRY_SLEEP_MSEC", "0x10");
  EXPECT_EQ(read_config().socket_retry_count, -2);
  EXPECT_EQ(read_config().socket_retry_sleep_msec, 16);
}

}  // namespace
}  // namespace talaria
