"""The layer check finds every kind of offence in a tree made bad on purpose, and nothing in a good one."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools"
sys.path.insert(0, str(TOOLS))
from cpp_outline import functions_of  # noqa: E402

GOOD = {
    "src/base/status.h": "#pragma once\nnamespace t { struct Status { int code = 0; }; }\n",
    "src/schedule/step.h": "#pragma once\n#include <cstdint>\nstruct Step { uint32_t block; };\n",
    "src/transport/peer.h": '#pragma once\n#include "schedule/step.h"\n#include <cuda.h>\n',
    "src/engine/host/run.cc": '#include "schedule/step.h"\n#include "transport/peer.h"\nint run(int a) { return a; }\n',
    "src/runtime/group.h": '#pragma once\n#include "base/status.h"\n#include "engine/host/run.h"\n',
    "src/engine/host/run.h": "#pragma once\nint run(int a);\n",
    "src/api/group.cc": '#include "nccl.h"\n#include "runtime/group.h"\n',
}


class CheckLayers(unittest.TestCase):
    def check(self, changes, *arguments):
        """Runs the checker over the good tree with `changes`; returns its exit code and output."""
        with tempfile.TemporaryDirectory() as root:
            for name, text in {**GOOD, **changes}.items():
                path = pathlib.Path(root) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            done = subprocess.run([sys.executable, TOOLS / "check_layers.py", "--root", root, *arguments],
                                  capture_output=True, text=True)
            return done.returncode, done.stdout + done.stderr

    def assert_offence(self, text, changes, *arguments):
        code, output = self.check(changes, *(arguments or ["--no-headers"]))
        self.assertEqual(code, 1, output)
        self.assertIn(text, output)
        self.assertIn(" 1 offences", output)

    def test_good_tree_has_no_offence(self):
        code, output = self.check({}, "--no-headers")
        self.assertEqual(code, 0, output)

    def test_empty_tree_is_an_error(self):
        with tempfile.TemporaryDirectory() as root:
            done = subprocess.run([sys.executable, TOOLS / "check_layers.py", "--root", root], capture_output=True)
            self.assertNotEqual(done.returncode, 0)

    def test_forbidden_include(self):
        self.assert_offence("src/api/info.cc: layer api may not include transport/peer.h",
                            {"src/api/info.cc": '#include "transport/peer.h"\n'})

    def test_only_lent_headers_cross_a_closed_edge(self):
        self.assert_offence("src/engine/plan.cc: layer engine may not include schedule/plan.h",
                            {"src/engine/plan.cc": '#include "schedule/plan.h"\n', "src/schedule/plan.h": ""})

    def test_include_in_a_comment_does_not_count(self):
        code, output = self.check({"src/base/log.cc": '/*\n#include "runtime/group.h"\n*/\n'}, "--no-headers")
        self.assertEqual(code, 0, output)

    def test_unknown_layer(self):
        self.assert_offence("'util' is not a layer", {"src/util/misc.h": ""})

    def test_cycle_between_headers(self):
        self.assert_offence("cycle between headers: src/base/a.h -> src/base/b.h -> src/base/a.h",
                            {"src/base/a.h": '#include "base/b.h"\n', "src/base/b.h": '#include "base/a.h"\n'})

    def test_cycle_between_layers(self):
        code, output = self.check({"src/base/a.h": '#include "runtime/group.h"\n'}, "--no-headers")
        self.assertEqual(code, 1)
        self.assertIn("cycle between layers: base -> runtime -> base", output)

    def test_cuda_header_on_the_pure_side(self):
        self.assert_offence("layer schedule may not include the CUDA header cuda_fp16.h",
                            {"src/schedule/half.h": "#include <cuda_fp16.h>\n"})

    def test_io_on_the_pure_side(self):
        self.assert_offence("layer schedule may not include <sys/mman.h>",
                            {"src/schedule/map.cc": "#include <sys/mman.h>\n"})

    def test_iostream(self):
        self.assert_offence("<iostream>", {"src/engine/print.cc": "#include <iostream>\n"})

    def test_nccl_header_below_api(self):
        self.assert_offence("only api includes nccl.h", {"src/runtime/call.cc": '#include "nccl.h"\n'})

    def test_long_file(self):
        self.assert_offence("src/base/long.cc: 501 lines", {"src/base/long.cc": "int a;\n" * 501})

    def test_long_device_file(self):
        self.assert_offence("src/engine/long.cuh: 301 lines", {"src/engine/long.cuh": "int a;\n" * 301})

    def test_long_line(self):
        self.assert_offence("src/base/wide.h:2: 121 columns", {"src/base/wide.h": "\n//" + "x" * 119 + "\n"})

    def test_long_function(self):
        self.assert_offence("src/base/f.cc:3: long_one has 61 lines",
                            {"src/base/f.cc": "\n\nint long_one() {\n" + "  {\n  }\n" * 29 + "  return 1;\n}\n"})

    def test_many_parameters(self):
        self.assert_offence("src/base/f.h:1: f has 6 parameters",
                            {"src/base/f.h": "void f(int a, int b, int c, int d, int e, std::pair<int, int> f);\n"})

    def test_excuse_with_a_reason(self):
        text = "// The driver's. budget: signature of cuLaunchKernel\nvoid f(int a, int b, int c, int d, int e, int g);\n"
        code, output = self.check({"src/base/f.h": text}, "--no-headers")
        self.assertEqual(code, 0, output)
        self.assert_offence("f has 6 parameters", {"src/base/f.h": text.replace("signature of cuLaunchKernel", "")})

    def test_entry_points_may_have_many_parameters(self):
        text = "int pncclReduce(int a, int b, int c, int d, int e, int f) { return 0; }\n"
        code, output = self.check({"src/api/collectives.cc": text}, "--no-headers")
        self.assertEqual(code, 0, output)

    def test_header_that_does_not_compile_alone(self):
        self.assert_offence("src/base/needy.h: does not compile alone",
                            {"src/base/needy.h": "#pragma once\nstd::string name();\n"}, "--cache", os.devnull)

    def test_header_cache_remembers_the_verdict(self):
        with tempfile.TemporaryDirectory() as folder:
            cache = ["--cache", folder + "/cache.json"]
            needy = {"src/base/needy.h": "#pragma once\nstd::string name();\n"}
            self.assertIn("5 headers compiled anew, 1 skipped", self.check(needy, *cache)[1])
            code, output = self.check(needy, *cache)
            self.assertIn("0 headers compiled anew, 1 skipped", output)
            self.assertEqual(code, 1)


class Outline(unittest.TestCase):
    def outline(self, text):
        return [(f.name, f.lines, f.parameters) for f in functions_of(text)]

    def test_functions_methods_and_constructors(self):
        text = """
namespace a {
class C final : public B {
 public:
  C(int x, int y) : x_{x}, y_(y) {}
  ~C() = default;
  int get(std::map<int, int> m) const noexcept override {
    if (m.size() > 1) { return 2; }
    return 1;
  }
 private:
  int x_{0}, y_ = 1;
};
}  // namespace a
"""
        self.assertEqual(self.outline(text), [("C", 1, 2), ("~C", 0, 0), ("get", 4, 1)])

    def test_kernel(self):
        text = 'extern "C" __global__ void __launch_bounds__(512) kernel(const Batch batch, int n) {\n  f<1, 2>(n);\n}\n'
        self.assertEqual(self.outline(text), [("kernel", 3, 2)])

    def test_operators_and_templates(self):
        text = ("template <typename T = int, int N = 3>\nT* operator->() { return 0; }\n"
                "bool operator==(A a, A b) { return true; }\nauto f(int a) -> std::pair<int, int> {\n}\n")
        self.assertEqual(self.outline(text), [("operator->", 2, 0), ("operator==", 1, 2), ("f", 2, 1)])

    def test_tables_and_lambdas_are_no_functions(self):
        text = ("const Row kRows[] = {\n    {f(1), 2},\n};\nconstexpr auto g = [](int a, int b) { return a; };\n"
                "enum class E : int { a, b };\nstruct S { int a; };\n")
        self.assertEqual(self.outline(text), [])

    def test_braces_in_strings_comments_and_macros(self):
        text = ('#define M(x) { \\\n  {\nvoid f() {  // {\n  puts("{{{"); char c = \'{\'; /* { */\n  long n = 1\'000;\n}\n'
                'void g(const char* a = R"x({,,})x", int b = 2) {}\n')
        self.assertEqual(self.outline(text), [("f", 4, 0), ("g", 1, 2)])


if __name__ == "__main__":
    unittest.main()
