#include "base/config_report.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "base/known_variables.h"
#include "base/log.h"
#include "base/os.h"
#include "unit/base/environment.h"
#include "unit/base/folder.h"

namespace talaria {
namespace {

using test::Folder;
using test::ScopedVariable;

// The number of times that `part` stands in `text`.
int count(const std::string& text, const std::string& part) {
  int times = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++times;
  return times;
}

class ConfigReport : public testing::Test {
 protected:
  ConfigReport() { set_system_root_for_tests(folder_.at("root")); }
  ~ConfigReport() override {
    set_system_root_for_tests("");
    log_reset();
  }

  // What reading the configuration twice logs.
  std::string logged(const char* level) {
    const std::string file = folder_.at("log");
    const ScopedVariable debug("NCCL_DEBUG", level), name("NCCL_DEBUG_FILE", file.c_str()),
        subsystems("NCCL_DEBUG_SUBSYS", nullptr), home("HOME", nullptr);
    log_reset();
    (void)read_reported_config();
    (void)read_reported_config();
    return folder_.read("log");
  }

  Folder folder_;
};

TEST_F(ConfigReport, MisspeltVariablesAreNamedOnceWithTheNearestName) {
  const ScopedVariable first("NCCL_SOCKET_IFNAM", "eth0"), second("TALARIA_DEVISE", "host"), third("NCCL_DEBUGG", "1");
  const std::string text = logged("WARN");
  EXPECT_EQ(count(text, "NCCL WARN NCCL_SOCKET_IFNAM (set by environment) is not a variable of this library; did you "
                        "mean NCCL_SOCKET_IFNAME?\n"), 1) << text;
  EXPECT_EQ(count(text, "did you mean TALARIA_DEVICE?"), 1) << text;
  EXPECT_EQ(count(text, "did you mean NCCL_DEBUG?"), 1) << text;
}

TEST_F(ConfigReport, AVariableThatResemblesNoneIsNamedWithoutAGuess) {
  const ScopedVariable odd("NCCL_QUITE_SOMETHING_ELSE_ENTIRELY", "1");
  const std::string text = logged("WARN");
  EXPECT_EQ(count(text, "NCCL_QUITE_SOMETHING_ELSE_ENTIRELY (set by environment) is not a variable of this library\n"),
            1) << text;
}

TEST_F(ConfigReport, NumbersThatDoNotParseAreNamedWithValueAndDefault) {
  const ScopedVariable variable("NCCL_SOCKET_RETRY_CNT", "many");
  const std::string text = logged("WARN");
  EXPECT_EQ(count(text, "NCCL_SOCKET_RETRY_CNT=many (set by environment) is not a whole number, decimal or 0x...; the "
                        "default 34 is used"), 1) << text;
}

TEST_F(ConfigReport, MalformedLinesOfFilesAreNamedOnce) {
  folder_.write("root/etc/nccl.conf", "NCCL_HOSTID x\nNCCL_SOCKET_RETRY_CNT=12\nNCCL_SOKET_IFNAME=eth0\n");
  const ScopedVariable unset("NCCL_SOCKET_RETRY_CNT", nullptr);
  const std::string text = logged("INFO");
  const std::string path = folder_.at("root/etc/nccl.conf");
  EXPECT_EQ(count(text, path + ":1: \"NCCL_HOSTID x\" is no NAME=value"), 1) << text;
  EXPECT_EQ(count(text, "NCCL_SOCKET_RETRY_CNT set by " + path + ":2 to 12\n"), 1) << text;
  EXPECT_EQ(count(text, "NCCL_SOKET_IFNAME (set by " + path + ":3) is not a variable"), 1) << text;
}

TEST_F(ConfigReport, InfoListsWhatIsSetAndWhetherItHasAnEffect) {
  const ScopedVariable used("NCCL_SOCKET_RETRY_CNT", "0x10"), ignored("NCCL_IB_TIMEOUT", "22");
  const std::string text = logged("INFO");
  EXPECT_EQ(count(text, "NCCL INFO NCCL_SOCKET_RETRY_CNT set by environment to 0x10\n"), 1) << text;
  EXPECT_EQ(count(text, "NCCL INFO NCCL_IB_TIMEOUT set by environment to 22, which has no effect"), 1) << text;
  EXPECT_EQ(count(text, "NCCL INFO NCCL_DEBUG set by environment to INFO\n"), 1) << text;
}

TEST_F(ConfigReport, NothingIsSaidOfKnownVariablesAtWarnOrOfAnyAtVersion) {
  const ScopedVariable version("NCCL_VERSION", "2.28.9"), tests("NCCL_TESTS_SPLIT", "2"), net("NCCL_NET", "IB"),
      window("NCCL_SYM_CTAS", "4"), handling("NCCL_ASYNC_ERROR_HANDLING", "1"), wait("NCCL_BLOCKING_WAIT", "1");
  EXPECT_EQ(count(logged("WARN"), "WARN"), 0) << folder_.read("log");
  const ScopedVariable odd("NCCL_DEBUGG", "1");
  EXPECT_EQ(logged("VERSION"), "");
}

TEST(KnownVariables, EveryRowIsKnownAndNamesAreWellFormed) {
  for (const ConfigRow& row : config_rows()) EXPECT_TRUE(is_known_variable(row.name)) << row.name;
  size_t names = 0;
  for (const VariableGroup& group : variables_without_effect()) {
    for (const std::string& name : names_of(group)) {
      ++names;
      EXPECT_TRUE(name.starts_with("NCCL_") || name.starts_with("TALARIA_")) << name;
      EXPECT_EQ(find_config_row(name), nullptr) << name;
      EXPECT_TRUE(is_known_variable(name.ends_with('*') ? name.substr(0, name.size() - 1) + "X" : name)) << name;
    }
  }
  EXPECT_GT(names, 150u);
}

TEST(KnownVariables, NearestIsTheOneWithTheFewestChanges) {
  EXPECT_EQ(nearest_variable("NCCL_DEBUG"), "NCCL_DEBUG");
  EXPECT_EQ(nearest_variable("NCCL_DEBUG_SUBSYSTEM"), "NCCL_DEBUG_SUBSYS");
  EXPECT_EQ(nearest_variable("NCCL_IB_DISABEL"), "NCCL_IB_DISABLE");
  EXPECT_EQ(nearest_variable("NCCL_P2P_DISABLED"), "NCCL_P2P_DISABLE");
  EXPECT_EQ(nearest_variable("XXXXXXXXXXXXXXXXXXXXXXX"), "");
}

}  // namespace
}  // namespace talaria
