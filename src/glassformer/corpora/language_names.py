"""Names of languages, in English and in the languages themselves, by which header rows are found."""

from glassformer.corpora import columns

_NAMES = """
ar: Arabic, العربية, عربي
bg: Bulgarian, Български
bn: Bengali, বাংলা
bs: Bosnian, Bosanski
ca: Catalan, Català
cs: Czech, Čeština, Česky
cy: Welsh, Cymraeg
da: Danish, Dansk
de: Deutsch
el: Greek, Ελληνικά
eo: Esperanto
es: Español, Castellano
et: Estonian, Eesti
eu: Basque, Euskara
fa: Persian, Farsi, فارسی
fi: Finnish, Suomi
fr: Français
ga: Irish, Gaeilge
gl: Galician, Galego
he: Hebrew, עברית
hi: Hindi, हिन्दी, हिंदी
hr: Croatian, Hrvatski
hu: Hungarian, Magyar
hy: Armenian, Հայերեն
id: Indonesian, Bahasa Indonesia
is: Icelandic, Íslenska
it: Italiano
ja: 日本語
ka: Georgian, ქართული
kk: Kazakh, Қазақша
ko: Korean, 한국어
la: Latin, Latina
lt: Lithuanian, Lietuvių
lv: Latvian, Latviešu
mk: Macedonian, Македонски
ms: Malay, Bahasa Melayu
nb: Bokmål
nl: Nederlands
nn: Nynorsk
no: Norwegian, Norsk
pl: Polish, Polski
pt: Português
ro: Romanian, Română
ru: Русский
sk: Slovak, Slovenčina
sl: Slovene, Slovenian, Slovenščina
sq: Albanian, Shqip
sr: Serbian, Srpski, Српски
sv: Swedish, Svenska
sw: Swahili, Kiswahili
ta: Tamil, தமிழ்
te: Telugu, తెలుగు
th: Thai, ไทย, ภาษาไทย
tl: Tagalog, Filipino
tr: Turkish, Türkçe
uk: Ukrainian, Українська
ur: Urdu, اردو
vi: Vietnamese, Tiếng Việt
zh: 中文, 汉语, 漢語
"""
CODES = columns.CODES | {
    columns.normalized(name): code
    for code, _, names in (line.partition(":") for line in _NAMES.strip().splitlines())
    for name in names.split(",")
}
"""Codes of languages by their names in lower case."""


def name_languages(first: str, second: str) -> bool:
    """Whether two cells are the names of two languages: one in English or in itself, the other one also in a third
    language (Deutsch and Englisch). Two names of one language (Deutsch and German) may be a text and its translation.
    """
    codes = [CODES.get(columns.normalized(cell)) for cell in (first, second)]
    are_short = all(code or len(cell.split()) == 1 for code, cell in zip(codes, (first, second), strict=True))
    return any(codes) and codes[0] != codes[1] and are_short
