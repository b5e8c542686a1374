"""The grammars in examples/grammars: for each, texts that belong and texts that do not."""

from __future__ import annotations

from pathlib import Path

import pytest

import grammask

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "grammars"

SCHOLARS_MATE = "1. e4 e5 2. Bc4 Nc6 3. Qh5 Nf6?? 4. Qxf7# 1-0"

C_PROGRAM = """#include<stdio.h>
/* sums the numbers below n */
static int sum(const int *numbers, int n) {
    int total = 0; // starts at nothing
    for (int i = 0; i < n; i++) {
        if (numbers[i] % 2 == 0 && numbers[i] != 4) total += numbers[i];
        else continue;
    }
    return total;
}
int main(void) {
    int values[4] = {1, 2, 0x1F, 'a'};
    printf("%d\\n", sum(values, (int) sizeof(values) / sizeof(int)));
    do { values[0]--; } while (values[0] > 0 ? 1 : 0);
    return 0;
}
"""

# grammar: (accepted, refused)
TABLES: dict[str, tuple[list[str], list[str]]] = {
    "arithmetic.gbnf": (
        ["1=1\n", "1 + 2*(x - 3) = y\n", "a_1 = -b\n0.5/2 = 0.25\n", "((((1)))) = 1\n"],
        ["", "1=1", "1 + = 2\n", "(1 = 1\n", "01 = 1\n", "1  = 1\n", "1 = 2 = 3\n", "1. = 1\n"],
    ),
    "json.gbnf": (
        ["null", " [1, -2.5e+3, []]\n", '{"a": {"b": [true, false]}, "\\u00e9": "é\\n"}', '"😀"'],
        ["", "[1,]", "{a: 1}", "01", "'x'", '{"a" 1}', '"\n"', "[1", '"\\x"', "1."],
    ),
    "json_array.gbnf": (
        ['[\n  {"name": "nut", "count": 0}\n]\n', '[\n  {"name": "a", "count": 12},\n  {"name": "b", "count": 3}\n]\n'],
        ["[\n\n]\n", '[\n  {"name": "", "count": 0}\n]\n', '[\n  {"name": "a", "count": 012}\n]\n', "[]"],
    ),
    "list.gbnf": (
        ["- milk\n", "- milk\n  - whole\n- bread\n", "- a\n" * 7],
        ["", "milk\n", "- milk", "- \n", "- a\n" * 8, "- a\n" + "  - b\n" * 4],
    ),
    "english.gbnf": (
        ["The cat sings.", "Two small old robots wait all day!", "A parser works again. Many dogs sing."],
        ["The cat sing.", "Two robot waits.", "the cat sings.", "A small old green dog waits.", "The cat sings"],
    ),
    "japanese.gbnf": (
        ["猫がいる。", "東京タワー、大阪、人々！", "１２時ですか？はい。\n"],
        ["", "猫がいる", "Tokyo。", "、猫。", "猫、、犬。"],
    ),
    "chess.gbnf": (
        [SCHOLARS_MATE, "1. d4 d5 2. O-O O-O-O", "1. exd8=Q+ Nbd7 2. R1a3 1/2-1/2", "1. e4 e5"],
        ["", "1. e4", "1. e4 e9", "1. e8 e5", "1. O-O-O-O e5", "1.e4 e5", "1. Ze4 e5", "0. e4 e5"],
    ),
    "csv.lark": (
        ["id,name,price,day\n1,nut,0.05,2024-02-29\n", 'id,name,price,day\r\n12,"a ""b"", c\n",10.00,\r\n'],
        [
            "id,name,price,day\n",
            "1,nut,0.05,2024-02-29\n",
            "id,name,price,day\n1,nut,0.5,2024-02-29\n",
            "id,name,price,day\n1,nut,0.05,2024-13-01\n",
            "id,name,price,day\n1,a,b,0.05,2024-01-01\n",
            'id,name,price,day\n1,"a,0.05,2024-01-01\n',
        ],
    ),
    "tsv.gbnf": (
        ["a\tb\tc\n", "a\tb\tc\nx y\t\t-1.5\n\tü\t0\n"],
        ["", "a\tb\n", "a\tb\tc\nx\ty\tz\n", "a\tb\tc\nx\t1\n", "a\tb\tc\n1\t2\t3\t4\n"],
    ),
    "html.lark": (
        [
            "<p>Tom &amp; Jerry</p>",
            '<h1 class="big red">A <em>b <strong>c</strong></em></h1><hr><ul><li>x<ol><li>y</li></ol></li></ul>',
            '<p><a href="https://example.org/a?b=c">see <em>here</em></a><br></p>',
            "<p></p>",
        ],
        [
            "",
            "text",
            "<p>a",
            "<p>a</h1>",
            "<p><em>a</p></em>",
            "<script>x</script>",
            "<p>a & b</p>",
            "<ul></ul>",
            "<ul><li>x</li></ol>",
            '<p><a href="javascript:x">y</a></p>',
        ],
    ),
    "sql_select.gbnf": (
        [
            "SELECT * FROM t",
            "SELECT DISTINCT a, b.c AS d FROM b JOIN e AS f ON b.x = f.y WHERE a > 1 AND NOT c IS NULL OR a IN (1, 2);",
            "SELECT count(*), max(a + 2 * b) FROM t GROUP BY c HAVING count(*) > 1 ORDER BY c DESC LIMIT 10",
            "SELECT a FROM (SELECT a FROM t) AS s WHERE a BETWEEN 1 AND (SELECT max(a) FROM t)",
            "SELECT a FROM t UNION ALL SELECT 'it''s' FROM u",
        ],
        [
            "",
            "SELECT FROM t",
            "SELECT a",
            "SELECT a FROM t WHERE",
            "SELECT a, FROM t",
            "SELECT a FROM t WHERE a = 'x",
            "SELECTa FROM t",
            "DROP TABLE t",
            "SELECT a FROM t; DROP TABLE t",
            "SELECT a FROM FROM",
        ],
    ),
    "c.lark": (
        [C_PROGRAM, "int x;", 'const char *s = "a\\n" "b";', "void f(void){a.b->c[1](2, 3)++;}", "int f(){}"],
        [
            "",
            "int x",
            "int f( {}",
            "void f(void){if (1) }",
            "int 1x;",
            "void f(void){return 1}",
            "x = 1;",
            "void f(void){(a;}",
        ],
    ),
    "calculator_call.lark": (
        ["ANSWER: four", 'CALL {"operation": "add", "numbers": [1, 2.5]}'],
        [
            "ANSWER: ",
            "ANSWER: a\nb",
            'CALL {"operation": "divide", "numbers": [1, 2]}',
            'CALL {"operation": "add"}',
            "CALL ",
        ],
    ),
}


def read(name: str) -> grammask.Grammar:
    text = (FOLDER / name).read_text(encoding="utf-8")
    return grammask.Grammar.lark(text) if name.endswith(".lark") else grammask.Grammar.gbnf(text)


@pytest.fixture(scope="module")
def vocabulary() -> grammask.Vocabulary:
    return grammask.Vocabulary.from_tokens([bytes([byte]) for byte in range(256)] + [b"</s>"], eos_token_ids=[256])


def test_every_example_has_a_table() -> None:
    assert {path.name for path in FOLDER.iterdir() if path.suffix in (".gbnf", ".lark")} == set(TABLES)


@pytest.mark.parametrize("name", TABLES)
def test_accepted_and_refused(name: str, vocabulary: grammask.Vocabulary) -> None:
    grammar = read(name)
    assert [str(found) for found in grammar.diagnostics()] == []
    compiled = grammask.compile(grammar, vocabulary)
    accepted, refused = TABLES[name]
    for text in accepted:
        matcher = compiled.matcher()
        data = text.encode()
        reached = matcher.matched_prefix(data)
        assert reached == len(data), f"stuck after {data[:reached]!r} in {text!r}"
        assert matcher.accept_bytes(data)
        assert matcher.is_complete, text
    for text in refused:
        matcher = compiled.matcher()
        assert not (matcher.accept_bytes(text.encode()) and matcher.is_complete), text
