#include "base/log.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>

#include "base/os.h"
#include "base/status.h"
#include "support/processes.h"
#include "unit/base/environment.h"

namespace talaria {
namespace {

using test::ScopedVariable;

// A folder of its own, and the logger set to write there at a given level.
class LogTest : public testing::Test {
 protected:
  LogTest() {
    std::string pattern = testing::TempDir() + "talaria_log_XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  ~LogTest() override {
    log_reset();
    log_set_device(-1);
    std::filesystem::remove_all(folder_);
  }

  // What `write` logs with the given settings.
  template <typename Function>
  std::string logged(const char* level, const char* subsystems, Function write) {
    const std::string file = folder_ + "/log" + std::to_string(++files_);
    const ScopedVariable debug("NCCL_DEBUG", level), subsys("NCCL_DEBUG_SUBSYS", subsystems),
        name("NCCL_DEBUG_FILE", file.c_str());
    log_reset();
    write();
    return text_of(file);
  }

  static std::string text_of(const std::string& file) {
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    return text.str();
  }

  std::string folder_;
  int files_ = 0;
};

TEST_F(LogTest, InfoLinesHaveHostProcessThreadAndDevice) {
  const std::string host = host_name().substr(0, host_name().find('.'));
  const std::string start = fmt::format("{}:{}:{} ", host, getpid(), thread_id());
  EXPECT_EQ(logged("INFO", nullptr, [] { log_info(kLogInit, "rank {} of {}", 1, 2); }),
            start + "NCCL INFO rank 1 of 2\n");
  log_set_device(3);
  EXPECT_EQ(logged("INFO", nullptr, [] { log_info(kLogInit, "x"); }), start + "[3] NCCL INFO x\n");
}

TEST_F(LogTest, WarningsHaveAnEmptyLineTimeAndPlace) {
  const std::string text = logged("WARN", nullptr, [] { log_warn("bad {}", 7); });
  const std::regex form(
      R"(\n\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\] [^:]+:\d+:\d+ log_test\.cc:\d+ NCCL WARN bad 7\n)");
  EXPECT_TRUE(std::regex_match(text, form)) << text;
}

TEST_F(LogTest, TimeHasTheFormatAndStandsAtTheLevelsAskedFor) {
  const ScopedVariable format("NCCL_DEBUG_TIMESTAMP_FORMAT", "<%Y %3f %%2f> "),
      levels("NCCL_DEBUG_TIMESTAMP_LEVELS", "info,TRACE");
  const std::string text = logged("INFO", nullptr, [] {
    log_info(kLogInit, "x");
    log_warn("y");
  });
  const std::regex form(R"(<\d{4} \d{3} %2f> [^:]+:\d+:\d+ NCCL INFO x\n)"
                        R"(\n[^:]+:\d+:\d+ log_test\.cc:\d+ NCCL WARN y\n)");
  EXPECT_TRUE(std::regex_match(text, form)) << text;
}

TEST_F(LogTest, LevelsWithTimeMayBeExcludedOrAll) {
  const auto begins_with_time = [&](const char* levels) {
    const ScopedVariable format("NCCL_DEBUG_TIMESTAMP_FORMAT", "time "), chosen("NCCL_DEBUG_TIMESTAMP_LEVELS", levels);
    return logged("INFO", nullptr, [] { log_info(kLogInit, "x"); }).starts_with("time ");
  };
  EXPECT_TRUE(begins_with_time("ALL"));
  EXPECT_TRUE(begins_with_time("^WARN"));
  EXPECT_FALSE(begins_with_time("^INFO"));
  EXPECT_FALSE(begins_with_time(nullptr));
}

TEST_F(LogTest, AWarningSwitchesToInfoWhereAskedTo) {
  for (const char* value : {"0", "1"}) {
    const ScopedVariable enable("NCCL_WARN_ENABLE_DEBUG_INFO", value);
    const std::string text = logged("WARN", nullptr, [] {
      log_info(kLogInit, "before");
      log_warn("trouble");
      log_info(kLogInit, "after");
    });
    EXPECT_EQ(text.find("before"), std::string::npos) << text;
    EXPECT_EQ(text.find("INFO after") != std::string::npos, value[0] == '1') << text;
  }
}

TEST_F(LogTest, OnceIsOnceForEachText) {
  EXPECT_EQ(logged("VERSION", nullptr, [] {
              for (const char* text : {"a", "b", "a"}) log_once(LogLevel::kVersion, kLogAll, text);
            }), "a\nb\n");
  EXPECT_EQ(logged("VERSION", nullptr, [] { log_once(LogLevel::kVersion, kLogAll, "a"); }), "a\n");
}

TEST_F(LogTest, FailuresAreLoggedWithThePlaceThatDecided) {
  const std::string text = logged("WARN", nullptr, [] { (void)fail(Code::kRemote, "rank {} has gone", 4); });
  EXPECT_NE(text.find("log_test.cc:"), std::string::npos) << text;
  EXPECT_NE(text.find("NCCL WARN rank 4 has gone\n"), std::string::npos) << text;
}

TEST_F(LogTest, VersionLinesAreBare) {
  EXPECT_EQ(logged("VERSION", nullptr, [] {
              log_text(LogLevel::kVersion, kLogAll, "NCCL version 2.28.9+cuda13.0");
              log_warn("hidden at this level");
            }), "NCCL version 2.28.9+cuda13.0\n");
}

TEST_F(LogTest, LevelsIncludeTheLowerOnes) {
  const char* names[] = {"VERSION", "WARN", "INFO", "TRACE"};
  for (int set = 0; set < 4; ++set) {
    logged(names[set], "ALL", [&] {
      for (int level = 0; level < 4; ++level) {
        EXPECT_EQ(log_enabled(static_cast<LogLevel>(level + 1), kLogNet), level <= set) << names[set] << level;
      }
    });
  }
}

TEST_F(LogTest, SubsystemsFilterInfoButNotWarnings) {
  struct Case {
    const char* variable;
    bool init, net, bootstrap, reg;
  };
  const Case cases[] = {
      {nullptr, true, false, true, false},      {"", true, false, true, false},
      {"NET", false, true, false, false},       {"init,REG", true, false, false, true},
      {"ALL", true, true, true, true},          {"^NET", true, false, true, true},
      {"^INIT,BOOTSTRAP", false, true, false, true}, {"PROXY", false, false, false, false},
  };
  for (const Case& c : cases) {
    logged("INFO", c.variable, [&] {
      const char* label = c.variable == nullptr ? "unset" : c.variable;
      EXPECT_EQ(log_enabled(LogLevel::kInfo, kLogInit), c.init) << label;
      EXPECT_EQ(log_enabled(LogLevel::kInfo, kLogNet), c.net) << label;
      EXPECT_EQ(log_enabled(LogLevel::kInfo, kLogBootstrap), c.bootstrap) << label;
      EXPECT_EQ(log_enabled(LogLevel::kInfo, kLogReg), c.reg) << label;
      EXPECT_TRUE(log_enabled(LogLevel::kWarn, kLogNet)) << label;
    });
  }
}

TEST_F(LogTest, FileNamesExpandHostAndProcess) {
  const std::string pattern = folder_ + "/%h.%p.100%%.log";
  const ScopedVariable debug("NCCL_DEBUG", "INFO"), name("NCCL_DEBUG_FILE", pattern.c_str()),
      subsys("NCCL_DEBUG_SUBSYS", nullptr);
  log_reset();
  log_info(kLogInit, "here");
  const std::string host = host_name().substr(0, host_name().find('.'));
  EXPECT_NE(text_of(fmt::format("{}/{}.{}.100%.log", folder_, host, getpid())), "");
}

// What a child process writes to its standard output and error.
template <typename Function>
std::string output_of_child(Function function) {
  int pipe_ends[2];
  if (pipe(pipe_ends) != 0) return "no pipe";
  const pid_t child = test::fork_rank([&] {
    dup2(pipe_ends[1], 1);
    dup2(pipe_ends[1], 2);
    log_reset();
    function();
    fflush(nullptr);
    return 0;
  });
  close(pipe_ends[1]);
  std::string text;
  char buffer[256];
  for (ssize_t got; (got = read(pipe_ends[0], buffer, sizeof(buffer))) > 0;) text.append(buffer, got);
  close(pipe_ends[0]);
  EXPECT_EQ(test::wait_for_exit(child), 0);
  return text;
}

void log_something_at_every_level() {
  log_text(LogLevel::kVersion, kLogAll, "version");
  log_info(kLogInit, "info");
  log_warn("warning");
  (void)fail(Code::kInternal, "failure");
}

TEST_F(LogTest, SilentWithoutNcclDebug) {
  const std::string file = folder_ + "/none";
  const ScopedVariable debug("NCCL_DEBUG", nullptr), name("NCCL_DEBUG_FILE", file.c_str());
  EXPECT_EQ(output_of_child(log_something_at_every_level), "");
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST_F(LogTest, WritesToStandardOutputWithoutAFile) {
  const ScopedVariable debug("NCCL_DEBUG", "info"), name("NCCL_DEBUG_FILE", nullptr);
  const std::string text = output_of_child(log_something_at_every_level);
  for (const char* part : {"version\n", "INFO info\n", "WARN warning\n", "WARN failure\n"}) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace talaria
