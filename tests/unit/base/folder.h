// A folder of the test's own, gone with the object.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace talaria::test {

class Folder {
 public:
  Folder() {
    std::string pattern = testing::TempDir() + "talaria_XXXXXX";
    path_ = mkdtemp(pattern.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string at(const std::string& name) const { return path_ + "/" + name; }
  std::string write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(at(name)).parent_path());
    std::ofstream(at(name)) << text;
    return at(name);
  }
  std::string read(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(at(name)).rdbuf();
    return text.str();
  }

 private:
  std::string path_;
};

}  // namespace talaria::test
