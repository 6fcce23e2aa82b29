"""A rough outline of C++ text: which functions it has, how long they are, how many parameters they take.

No parser: comments, strings and preprocessor lines are blanked, then braces are matched. What stands before an opening
brace at namespace or class scope tells whether it opens a function. Good enough for the house style; not for any C++.
"""
import dataclasses
import re

TOKEN = re.compile(
    r'(?P<raw>R"(?P<tag>[^ ()\\\t\n]{0,16})\(.*?\)(?P=tag)")'
    r"|(?P<comment>//[^\n]*|/\*.*?\*/)"
    r'|(?P<string>"(?:\\.|[^"\\\n])*")'
    r"|(?<![0-9A-Fa-f])(?P<char>'(?:\\.|[^'\\\n])+')", re.S)
PREPROCESSOR = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.M)
# Words that are followed by parentheses but are not the function's name.
NOT_NAMES = {"__attribute__", "__launch_bounds__", "alignas", "explicit", "requires", "decltype", "noexcept", "throw",
             "static_assert", "__declspec", "asm", "if", "for", "while", "switch", "catch", "return", "sizeof"}
SCOPE = re.compile(r"^(?:.*[\s;])?(namespace\b.*|extern\s*\"\s*\")\s*$", re.S)
TYPE = re.compile(r"\b(class|struct|union|enum)\b")


@dataclasses.dataclass
class Function:
    name: str
    line: int        # of the first line of its declaration
    lines: int       # 0 for a declaration without a body
    parameters: int


def blank(text):
    return re.sub(r"[^\n]", " ", text)


def strip_code(text, keep_strings=False):
    """The text with comments blanked and, unless kept, strings emptied and preprocessor lines blanked."""

    def replace(match):
        if match["comment"]:
            return blank(match[0])
        if keep_strings:
            return match[0]
        if match["char"]:
            return "'" + " " * (len(match[0]) - 2) + "'"
        return '"' + blank(match[0][1:-1]) + '"'

    text = TOKEN.sub(replace, text)
    return text if keep_strings else PREPROCESSOR.sub(lambda m: blank(m[0]), text)


def closing(text, start):
    """Index of the parenthesis that closes text[start]."""
    depth = 0
    for i in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[i], 0)
        if depth == 0:
            return i
    return len(text) - 1


def count_parameters(text):
    text = re.sub(r"->|<<|>>|<=|>=", "  ", text) if "<<" in text else text.replace("->", "  ")
    if text.strip() in ("", "void"):
        return 0
    depth, commas = 0, 0
    for char in text:
        if char in "(<[{":
            depth += 1
        elif char in ")>]}":
            depth -= 1
        elif char == "," and depth == 0:
            commas += 1
    return commas + 1


def signature(head):
    """(name, parameters) of the function that `head` declares, or None."""
    i = 0
    while (i := head.find("(", i)) >= 0:
        before = head[:i].rstrip()
        end = closing(head, i)
        name = re.search(r"(operator\s*[^\s\w]+|operator\s+[\w:]+|~?\w+)$", before)
        if before.endswith("operator"):  # operator()
            second = head.find("(", end)
            return ("operator()", count_parameters(head[second + 1:closing(head, second)])) if second >= 0 else None
        word = name[1] if name else ""
        if "=" in re.sub(r"operator\s*\S+$", "", before).replace("==", ""):
            # A default template argument may hold '='; an initialiser is no function.
            if not re.match(r"\s*template\b", before):
                return None
        if name and word not in NOT_NAMES:
            # A function name follows a type, a qualifier or (constructors) a scope's beginning.
            return word, count_parameters(head[i + 1:end])
        i = end + 1
    return None


def functions_of(text):
    code = strip_code(text)
    found, stack, start = [], [], 0  # stack: (kind, signature, first line)

    def line_at(index):
        while index < len(code) and code[index].isspace():
            index += 1
        return code.count("\n", 0, index) + 1

    inside = 0  # depth of braces within a function or an initialiser
    parens = 0
    for i, char in enumerate(code):
        if char in "()":
            parens += 1 if char == "(" else -1
        elif char == "{":
            head = code[start:i]
            if inside or parens:
                kind, what = "inner", None
            elif SCOPE.match(head.strip()) or head.strip().endswith('"') or re.search(r"\bnamespace\b", head):
                kind, what = "scope", None
            elif (what := signature(head)) and not is_type(head):
                kind = "function"
            else:
                kind, what = ("scope", None) if is_type(head) else ("inner", None)
            if kind == "function" and ends_in_initialiser(head):
                kind, what = "inner", None
            stack.append((kind, what, line_at(start), parens))
            inside += kind in ("function", "inner")
            parens = 0
            if kind in ("scope", "function"):
                start = i + 1
        elif char == "}" and stack:
            kind, what, line, parens = stack.pop()
            inside -= kind in ("function", "inner")
            if kind == "function":
                last = code.count("\n", 0, i) + 1
                found.append(Function(what[0], line, last - line + 1, what[1]))
            if not inside and kind in ("scope", "function"):
                start = i + 1
        elif char == ";" and not inside and not parens:
            head = code[start:i]
            # A declaration has a type before its name; `call(a, b);` does not occur at this scope.
            if (what := signature(head)) and not head.lstrip().startswith(("using", "typedef", "friend")):
                found.append(Function(what[0], line_at(start), 0, what[1]))
            start = i + 1
        elif char == ":" and not inside and re.fullmatch(r"\s*(public|private|protected)\s*", code[start:i]):
            start = i + 1
    return found


def is_type(head):
    """True when the brace after `head` opens a class or an enum."""
    plain = re.sub(r"template\s*<[^{;]*?>(?=\s*(class|struct|union|enum)\b)", "", head)
    plain = re.sub(r"\b(alignas|__attribute__|__align__)\s*\(+[^)]*\)+", "", plain)
    match = TYPE.search(plain)
    return bool(match) and "(" not in plain


def ends_in_initialiser(head):
    """True inside a constructor's member list: `X() : a_{1}, b_` — the brace belongs to a member, not to the body."""
    match = re.search(r"\)\s*(noexcept\s*)?:(?!:)(.*)$", head, re.S)
    if not match:
        return False
    tail = match[2].rstrip()
    return bool(re.search(r"[\w>]$", tail))
