"""Glossaries in TBX."""

import pytest

from glassformer.documents.tbx import tbx_terms
from glassformer.errors import CorpusError

VERSION2 = """<?xml version="1.0"?>
<!DOCTYPE martif SYSTEM "TBXcoreStructV02.dtd">
<martif type="TBX" xml:lang="en"><text><body>
<termEntry id="1"><langSet xml:lang="en"><tig><term>hard  drive</term></tig>
<ntig><termGrp><term>disk</term></termGrp></ntig>
</langSet><langSet xml:lang="fr-FR"><tig><term>disque dur</term>
<termNote type="administrativeStatus">preferredTerm-admn-sts</termNote></tig>
<tig><term>dur</term>
<termNote type="administrativeStatus">deprecatedTerm-admn-sts</termNote></tig></langSet></termEntry>
<termEntry id="2"><langSet xml:lang="en"><tig><term>only English</term></tig></langSet></termEntry>
</body></text></martif>"""

VERSION3 = """<tbx xmlns="urn:iso:std:iso:30042:ed-2"
xmlns:min="http://www.tbxinfo.net/ns/min" type="TBX-Min" xml:lang="en">
<text><body><conceptEntry><langSec xml:lang="en"><termSec><term>cat &amp; dog</term></termSec></langSec>
<langSec xml:lang="fr">
<termSec><term>chat et <hi>chien</hi></term></termSec><termSec><term>x</term>
<min:administrativeStatus>supersededTerm-admn-sts</min:administrativeStatus></termSec></langSec></conceptEntry>
</body></text></tbx>"""


def test_the_terms_of_version_2():
    assert tbx_terms("a.tbx", VERSION2.encode(), ("en-US", "fr")) == [(("hard drive", "disk"), ("disque dur",))]
    assert tbx_terms("a.tbx", VERSION2.encode(), ("fr", "en")) == [(("disque dur", "dur"), ("hard drive", "disk"))]


def test_the_terms_of_version_3():
    assert tbx_terms("a.tbx", VERSION3.encode(), ("en", "fr")) == [(("cat & dog",), ("chat et chien",))]


@pytest.mark.parametrize(
    ("data", "languages", "message"),
    [
        (VERSION2, ("en", "de"), r"a\.tbx: no terms in both en and de; its languages: en, fr-FR\."),
        ("<tmx/>", ("en", "fr"), r"a\.tbx: not a glossary in TBX: its first element is <tmx>"),
        ("<tbx></tbx>", ("en", "fr"), r"no terms in both en and fr\.\n  Give a glossary"),
        ("<tbx>", ("en", "fr"), r"a\.tbx:1"),
    ],
)  # fmt: skip
def test_what_is_no_glossary_of_the_languages(data, languages, message):
    with pytest.raises(CorpusError, match=message):
        tbx_terms("a.tbx", data.encode(), languages)
