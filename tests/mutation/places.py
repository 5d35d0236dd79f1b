"""Finds the places in C++ code where a fault is possible, and writes the code with a switch for each fault.

One build contains all faults: `a < b` becomes `(HWT_MUTANT(17) ? (a <= b) : (a < b))`. Line numbers stay the same.
"""

import dataclasses
import hashlib

import tree_sitter
import tree_sitter_cpp

PARSER = tree_sitter.Parser(tree_sitter.Language(tree_sitter_cpp.language()))

OPERATORS = {
    "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==",
    "&&": "||", "||": "&&", "+": "-", "-": "+", "*": "+", "/": "*", "%": "/",
    "&": "|", "|": "&", "<<": ">>", ">>": "<<", "+=": "-=", "-=": "+=", "++": "--", "--": "++",
}
BOUNDS = {"<", "<=", ">", ">="}
OTHER_END = {"std::min": "std::max", "std::max": "std::min"}

# Nodes that have no effect at run time.
NOT_AT_RUN_TIME = {
    "alignas_qualifier", "alignof_expression", "array_declarator", "attribute_declaration", "bitfield_clause",
    "comment", "concept_definition", "decltype", "enumerator_list", "explicit_function_specifier", "new_declarator",
    "noexcept", "optional_parameter_declaration", "preproc_call", "preproc_def", "preproc_function_def",
    "preproc_include", "requires_clause", "requires_expression", "sizeof_expression", "static_assert_declaration",
    "template_argument_list", "template_parameter_list", "type_descriptor",
}
# The statements that can be dropped, and the nodes in which they may be.
DROPPABLE = {"expression_statement", "return_statement", "throw_statement", "break_statement", "continue_statement"}
BODIES = {"compound_statement", "if_statement", "else_clause", "while_statement", "do_statement", "case_statement",
          "for_statement", "for_range_loop"}
# Calls of these do not change the behaviour of a program: prefetches and the checks of debug builds. The build for this
# check has no AddressSanitizer, so marks for it have no effect either.
NO_EFFECT = ("assert", "prefetch", "prefetch_to_write", "__builtin_prefetch", "poison_memory", "unpoison_memory")


@dataclasses.dataclass
class Place:
    path: str
    line: int
    kind: str
    before: str
    after: str
    code: str  # its line
    function: str  # that contains it
    twin: int = 0  # its index among equal places
    number: int = 0

    @property
    def key(self):
        """Identifies the place as long as the text of its line and the file's path do not change."""
        return f"{self.path}: {self.kind}: {self.before} -> {self.after}: {self.twin}: {self.code}"

    @property
    def name(self):
        """A hash of the key. Faults are chosen in the order of their names, which is the same on each machine."""
        return hashlib.sha256(self.key.encode()).hexdigest()[:8]


def text_of(node):
    return node.text.decode()


def parse(code):
    """Parses the code. HWT_API is blanked out, because the parser does not expand macros."""
    return PARSER.parse(code.replace(b"HWT_API", b"       "))


def enumerators_in(code):
    """Returns {`Enum::Name`: the next enumerator of the same enum class}."""
    following = {}

    def visit(node):
        names = node.child_by_field_name("name")
        body = node.child_by_field_name("body")
        if node.type == "enum_specifier" and names and body:
            all_of_it = [text_of(child.child_by_field_name("name")) for child in body.named_children
                         if child.type == "enumerator"]
            for name, other in zip(all_of_it, all_of_it[1:] + all_of_it[:1]):
                if name != other:
                    following[f"{text_of(names)}::{name}"] = other
        for child in node.children:
            visit(child)

    visit(parse(code).root_node)
    return following


class File:
    """A source file with its places."""

    def __init__(self, path, code, enumerators):
        self.path, self.code, self.enumerators = path, code, enumerators
        self.lines = code.decode().splitlines()
        self.tree = parse(code)
        self.places = {}  # node id -> Place
        self.twins = {}
        self.find(self.tree.root_node, False)

    # --- Finding ---

    def find(self, node, runs):
        """Finds the places below the node. `runs`: the node is part of code that is executed."""
        if node.type in NOT_AT_RUN_TIME or self.is_constant(node) or self.has_no_effect(node):
            return
        if node.type in ("compound_statement", "field_initializer_list"):
            runs = True
        if runs:
            self.find_fault(node)
        compiled = {"preproc_if": "condition", "preproc_elif": "condition", "preproc_ifdef": "name",
                    "case_statement": "value"}.get(node.type)
        if node.type == "if_statement" and any(child.type == "constexpr" for child in node.children):
            compiled = "condition"
        # The 0 of a pure virtual function is not a value.
        is_field = node.type == "field_declaration" and b"virtual" not in node.text
        left_out = node.child_by_field_name(compiled) if compiled else None
        for child in node.children:
            if child != left_out:
                self.find(child, runs or (is_field and child == node.child_by_field_name("default_value")))

    @staticmethod
    def is_constant(node):
        return node.type in ("declaration", "field_declaration") and any(
            child.type in ("storage_class_specifier", "type_qualifier")
            and child.text in (b"constexpr", b"static", b"thread_local", b"constinit") for child in node.children)

    def has_no_effect(self, node):
        """Returns whether the node is a call of NO_EFFECT, or an `if` or a `for` with nothing else in it. Their
        conditions are taken to have no effect.
        """
        if node.type == "expression_statement":
            call = node.named_children[0] if node.named_children else None
            if call is None or call.type != "call_expression":
                return False
            name = text_of(call.child_by_field_name("function"))
            return name.replace("->", ".").replace("::", ".").split(".")[-1] in NO_EFFECT
        if node.type == "if_statement":
            inside = [node.child_by_field_name("consequence"), node.child_by_field_name("alternative")]
            return all(self.has_no_effect(part) for part in inside if part is not None)
        if node.type == "for_statement":
            return self.has_no_effect(node.child_by_field_name("body"))
        return node.type in ("compound_statement", "else_clause") and bool(node.named_children) and all(
            self.has_no_effect(part) for part in node.named_children)

    def find_fault(self, node):
        kind = node.type
        if kind in ("binary_expression", "assignment_expression", "update_expression"):
            self.find_operator(node)
        elif kind == "condition_clause":
            value = node.child_by_field_name("value")
            if value is not None and not value.type.endswith("declaration"):
                if node.parent.type == "if_statement":
                    self.add(node, "negated condition", text_of(value), f"!({text_of(value)})")
                elif node.parent.type == "while_statement" and value.type != "true":
                    self.add(node, "loop left out", text_of(value), "false")
        elif kind in ("true", "false"):
            self.add(node, "constant", kind, "false" if kind == "true" else "true")
        elif kind == "number_literal" and text_of(node).isdigit():
            self.add(node, "constant", text_of(node), str(int(text_of(node)) + 1))
        elif kind == "qualified_identifier":
            self.find_enumerator(node)
        elif kind == "call_expression":
            function = node.child_by_field_name("function")
            name = text_of(function)
            other = OTHER_END.get(name.split("<")[0])
            if other:
                self.add(node, "bound", text_of(node), other + text_of(node)[len("std::min"):])
        elif kind in DROPPABLE and node.parent.type in BODIES:
            self.find_statement(node)

    def find_operator(self, node):
        operator = node.child_by_field_name("operator")
        other = OPERATORS.get(text_of(operator))
        if other is None or b'"' in node.text:
            return
        start, end = operator.start_byte - node.start_byte, operator.end_byte - node.start_byte
        after = node.text[:start] + other.encode() + node.text[end:]
        kind = "bound" if text_of(operator) in BOUNDS else "operator"
        self.add(node, kind, text_of(node), after.decode())

    def find_enumerator(self, node):
        parts = text_of(node).split("::")
        other = self.enumerators.get("::".join(parts[-2:]))
        if other and node.parent.type != "qualified_identifier":
            self.add(node, "enumerator", text_of(node), "::".join(parts[:-1] + [other]))

    def find_statement(self, node):
        if node.type == "return_statement" and node.named_child_count:
            return
        # Dropping the last break of a switch changes nothing.
        case = node.parent
        if (node.type == "break_statement" and case.type == "case_statement" and case.named_children[-1] == node
                and case.parent.named_children[-1] == case):
            return
        what = node.named_children[0].type if node.named_child_count else ""
        if node.type == "expression_statement" and what not in (
            "call_expression", "assignment_expression", "update_expression", "delete_expression"):
            return
        self.add(node, "dropped statement", text_of(node), "")

    @staticmethod
    def function_of(node):
        """Returns the name of the enclosing function, or "" if the parser does not tell."""
        while node is not None and node.type != "function_definition":
            node = node.parent
        while node is not None and node.type not in ("identifier", "field_identifier"):
            node = node.child_by_field_name("declarator") or node.child_by_field_name("name")
        return "" if node is None else text_of(node)

    def add(self, node, kind, before, after):
        if "//" in before or node.has_error:
            return
        line = node.start_point[0]
        flat = " ".join(before.split())
        place = Place(self.path, line + 1, kind, flat, " ".join(after.split()), self.lines[line].strip(),
                      self.function_of(node))
        first = place.key
        place.twin = self.twins.get(first, 0)
        self.twins[first] = place.twin + 1
        self.places[node.id] = place

    # --- Rewriting ---

    def rewritten(self):
        return self.render(self.tree.root_node)

    def render(self, node):
        out, position = [], node.start_byte
        for child in node.children:
            out += [self.code[position : child.start_byte].decode(), self.render(child)]
            position = child.end_byte
        text = "".join(out) + self.code[position : node.end_byte].decode()
        place = self.places.get(node.id)
        if place is None or not place.number:
            return text
        on = f"HWT_MUTANT({place.number})"
        if place.kind == "dropped statement":
            return f"{{ if (!{on}) {text} }}"
        if place.kind == "negated condition":
            return f"({on} != static_cast<bool>{text})"
        if place.kind == "loop left out":
            return f"(!{on} && {text})"
        return f"({on} ? ({place.after}) : ({text}))"
