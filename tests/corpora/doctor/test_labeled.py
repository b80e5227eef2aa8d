"""Diagnosis of labeled text, and of pairs in tables."""

from glassformer.corpora.doctor.diagnosis import diagnose
from glassformer.corpora.doctor.labeled import diagnose_labeled
from glassformer.corpora.read_options import DETECT

TRAIN = """text,label
one two,pos
three,
one two,pos
four five,neg
four five,pos
,pos
six seven,Neg
"""


def test_each_issue_of_labeled_text_is_found_once(tmp_path):
    train, dev = tmp_path / "train.csv", tmp_path / "dev.csv"
    train.write_text(TRAIN)
    dev.write_text("text,label\nsix seven,neg\nnew,pos\n")
    diagnosis = diagnose_labeled([train], DETECT, held_out={"dev": [dev]})
    assert [(f.kind, f.line) for f in diagnosis.findings] == [
        ("unusable-row", 3), ("contradicting-label", 6), ("no-text", 7), ("duplicate-text", 4), ("similar-labels", 8),
        ("overlap-text", 8),
    ]  # fmt: skip
    assert diagnosis.n_pairs == 7
    assert diagnosis.has_errors
    assert f"dev, {dev}:2" in diagnosis.findings[-1].detail


def test_clean_labeled_text_has_no_findings(tmp_path):
    train = tmp_path / "train.csv"
    train.write_text("text,label\none two,pos\nthree,neg\n")
    assert not diagnose_labeled([train], DETECT, held_out={}).counts


def test_blank_lines_of_a_table_of_pairs_are_no_findings(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("en,fr\none,un\n\ntwo,deux\n\n")
    diagnosis = diagnose([path])
    assert (diagnosis.n_pairs, diagnosis.counts) == (2, {})


def test_other_issues_are_found_beside_lines_that_are_not_text(tmp_path):
    path, summer = tmp_path / "a.csv", "summer,été".encode()
    path.write_bytes(b"en,fr\n%s\nwinter,\ncaf\xe9,a\n%s\n" % (summer, summer))
    findings = [(finding.kind, finding.line) for finding in diagnose([path]).findings]
    assert findings == [("not-utf8", 4), ("blank-side", 3), ("duplicate", 5)]


def test_pairs_in_a_table_are_examined(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('en,fr\n"one, two",un\nfour,\nthree\n"one, two",un\n')
    counts = diagnose([path]).counts
    assert counts == {"malformed": 1, "blank-side": 1, "duplicate": 1}
