"""The pages say what the code says: generated pages are up to date, tables are complete, links lead somewhere.

Usage: docs_test.py SOURCE_TREE PRINT_ENVIRONMENT
"""
import pathlib
import re
import subprocess
import sys
import unittest

SOURCE, PRINT_ENVIRONMENT = pathlib.Path(sys.argv[1]), sys.argv[2]


class Docs(unittest.TestCase):
    def test_environment_page_is_up_to_date(self):
        printed = subprocess.run([PRINT_ENVIRONMENT], capture_output=True, text=True, check=True).stdout
        self.assertIn("NCCL_DEBUG", printed)
        self.assertEqual((SOURCE / "docs/environment.md").read_text(), printed,
                         "run build/<preset>/bin/print_environment > docs/environment.md")

    def test_readme_has_a_status_for_every_function(self):
        wanted = (SOURCE / "tests/abi/symbols.txt").read_text().split()
        rows = re.findall(r"^\| `(nccl\w+)` \| ([^|]*) \| ([^|]*) \|", (SOURCE / "README.md").read_text(), re.M)
        self.assertGreater(len(wanted), 80)
        self.assertEqual(sorted(name for name, _, _ in rows), sorted(wanted))
        for name, cpu, gpu in rows:
            self.assertIn(cpu.strip(), ("yes", "not yet"), name)
            self.assertIn(gpu.strip(), ("yes", "not yet"), name)
        # What the API refuses is "not yet", and nothing else is.
        code = "".join(path.read_text() for path in (SOURCE / "src/api").glob("*.cc"))
        refused = re.findall(r'\b(?:not_supported|refuse\w*)\(\s*"(nccl\w+)"', code)
        self.assertEqual(sorted(name for name, cpu, _ in rows if cpu.strip() == "not yet"), sorted(refused))

    def test_links_lead_to_files(self):
        pages = [SOURCE / "README.md", *sorted((SOURCE / "docs").rglob("*.md"))]
        links = 0
        for page in pages:
            for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
                links += 1
                self.assertTrue((page.parent / target).exists(), f"{page.relative_to(SOURCE)} links to {target}")
        self.assertGreater(links, 5)

    def test_paths_named_in_pages_exist(self):
        pages = [SOURCE / "README.md", *sorted((SOURCE / "docs").glob("*.md"))]
        named = 0
        for page in pages:
            for path in re.findall(r"`((?:src|tests|tools|bench|docs|include|cmake|examples)/[\w./-]+\.\w+)`",
                                   page.read_text()):
                if path == "src/schedule/algorithms/flat.cc":  # the example that docs/adding.md adds
                    continue
                named += 1
                self.assertTrue((SOURCE / path).exists(), f"{page.relative_to(SOURCE)} names {path}")
        self.assertGreater(named, 10)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
