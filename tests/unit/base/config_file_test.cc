#include "base/config_file.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "base/config.h"
#include "base/os.h"
#include "unit/base/environment.h"
#include "unit/base/folder.h"

namespace talaria {
namespace {

using test::Folder;
using test::ScopedVariable;

ConfigFiles parsed(std::string_view text) {
  ConfigFiles files;
  parse_config_text("file", text, files);
  return files;
}

TEST(ConfigFile, ReadsNamesValuesAndComments) {
  const ConfigFiles files = parsed(
      "# first\n"
      "NCCL_DEBUG=WARN\n"
      "\n"
      "  NCCL_SOCKET_IFNAME =  =eth0,eth1  \r\n"
      "\t# NCCL_DEBUG=INFO\n"
      "NCCL_HOSTID=\n"
      "NCCL_COMM_ID=a#b=c\n"
      "NCCL_DEBUG=TRACE");
  EXPECT_EQ(files.complaints, std::vector<std::string>{});
  EXPECT_EQ(files.settings.at("NCCL_DEBUG").value, "TRACE");
  EXPECT_EQ(files.settings.at("NCCL_DEBUG").origin, "file:8");
  EXPECT_EQ(files.settings.at("NCCL_SOCKET_IFNAME").value, "=eth0,eth1");
  EXPECT_EQ(files.settings.at("NCCL_HOSTID").value, "");
  EXPECT_EQ(files.settings.at("NCCL_COMM_ID").value, "a#b=c");
  EXPECT_EQ(files.settings.size(), 4u);
}

TEST(ConfigFile, MalformedLinesAreSkippedAndNamedWithFileAndLine) {
  const ConfigFiles files = parsed("NCCL_DEBUG\nNCCL_DEBUG=INFO\n=x\nA B=c\n");
  EXPECT_EQ(files.settings.size(), 1u);
  ASSERT_EQ(files.complaints.size(), 3u);
  EXPECT_EQ(files.complaints[0], "file:1: \"NCCL_DEBUG\" is no NAME=value and is skipped");
  EXPECT_EQ(files.complaints[1].find("file:3: "), 0u);
  EXPECT_EQ(files.complaints[2].find("file:4: "), 0u);
}

TEST(ConfigFile, AnyBytesAreReadOrSkipped) {
  const uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  const char letters[] = "A=# \n\r\t\0\xff";
  for (int i = 0; i < 2000; ++i) {
    std::string text;
    for (uint64_t n = random() % 40; n > 0; --n) text += letters[random() % (sizeof(letters) - 1)];
    const ConfigFiles files = parsed(text);
    for (const auto& [name, setting] : files.settings) {
      EXPECT_FALSE(name.empty()) << seed;
      EXPECT_EQ(setting.value.find('\n'), std::string::npos) << seed;
    }
  }
}

class ConfigFilesOfTheMachine : public testing::Test {
 protected:
  ConfigFilesOfTheMachine() { set_system_root_for_tests(folder_.at("root")); }
  ~ConfigFilesOfTheMachine() override { set_system_root_for_tests(""); }
  Folder folder_;
  const std::string home_path_ = folder_.at("home");
  const ScopedVariable home_{"HOME", home_path_.c_str()}, conf_{"NCCL_CONF_FILE", nullptr},
      count_{"NCCL_SOCKET_RETRY_CNT", nullptr}, hostid_{"NCCL_HOSTID", nullptr}, comm_{"NCCL_COMM_ID", nullptr};
};

TEST_F(ConfigFilesOfTheMachine, EnvironmentWinsOverTheUsersFileOverTheMachines) {
  folder_.write("root/etc/nccl.conf", "NCCL_SOCKET_RETRY_CNT=1\nNCCL_HOSTID=machine\nNCCL_COMM_ID=machine\n");
  folder_.write("home/.nccl.conf", "NCCL_HOSTID=user\nNCCL_COMM_ID=user\n");
  const ScopedVariable set("NCCL_COMM_ID", "environment");
  const Config config = read_config();
  EXPECT_EQ(config.socket_retry_count, 1);
  EXPECT_EQ(config.host_id, "user");
  EXPECT_EQ(config.comm_id, "environment");
  EXPECT_EQ(find_setting(read_config_files(), "NCCL_COMM_ID")->origin, "environment");
  EXPECT_EQ(find_setting(read_config_files(), "NCCL_HOSTID")->origin, home_path_ + "/.nccl.conf:1");
}

TEST_F(ConfigFilesOfTheMachine, ANamedFileTakesThePlaceOfTheOneAtHome) {
  folder_.write("home/.nccl.conf", "NCCL_HOSTID=home\nNCCL_SOCKET_RETRY_CNT=5\n");
  const std::string path = folder_.write("other.conf", "NCCL_HOSTID=other\n");
  const ScopedVariable conf("NCCL_CONF_FILE", path.c_str());
  EXPECT_EQ(read_config().host_id, "other");
  EXPECT_EQ(read_config().socket_retry_count, 34);
}

TEST_F(ConfigFilesOfTheMachine, ANamedFileThatCannotBeReadIsAComplaint) {
  const std::string path = folder_.at("nowhere.conf");
  const ScopedVariable conf("NCCL_CONF_FILE", path.c_str());
  const ConfigFiles files = read_config_files();
  ASSERT_EQ(files.complaints.size(), 1u);
  EXPECT_NE(files.complaints[0].find(path), std::string::npos) << files.complaints[0];
}

TEST_F(ConfigFilesOfTheMachine, NoFilesAndNoHomeAreFine) {
  const ScopedVariable home("HOME", nullptr);
  const ConfigFiles files = read_config_files();
  EXPECT_TRUE(files.complaints.empty());
  EXPECT_TRUE(files.settings.empty());
  EXPECT_EQ(read_config().socket_retry_count, 34);
}

}  // namespace
}  // namespace talaria
