"""Names of languages, in English and in the languages themselves, by which columns are found."""

_NAMES = """
ar: Arabic, العربية, عربي
bg: Bulgarian, Български
bn: Bengali, বাংলা
bs: Bosnian, Bosanski
ca: Catalan, Català
cs: Czech, Čeština, Česky
cy: Welsh, Cymraeg
da: Danish, Dansk
de: German, Deutsch
el: Greek, Ελληνικά
en: English
eo: Esperanto
es: Spanish, Español, Castellano
et: Estonian, Eesti
eu: Basque, Euskara
fa: Persian, Farsi, فارسی
fi: Finnish, Suomi
fr: French, Français
ga: Irish, Gaeilge
gl: Galician, Galego
he: Hebrew, עברית
hi: Hindi, हिन्दी, हिंदी
hr: Croatian, Hrvatski
hu: Hungarian, Magyar
hy: Armenian, Հայերեն
id: Indonesian, Bahasa Indonesia
is: Icelandic, Íslenska
it: Italian, Italiano
ja: Japanese, 日本語
ka: Georgian, ქართული
kk: Kazakh, Қазақша
ko: Korean, 한국어
la: Latin, Latina
lt: Lithuanian, Lietuvių
lv: Latvian, Latviešu
mk: Macedonian, Македонски
ms: Malay, Bahasa Melayu
nb: Bokmål
nl: Dutch, Nederlands
nn: Nynorsk
no: Norwegian, Norsk
pl: Polish, Polski
pt: Portuguese, Português
ro: Romanian, Română
ru: Russian, Русский
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
zh: Chinese, 中文, 汉语, 漢語
"""
CODES = {
    name.strip().lower(): code
    for code, _, names in (line.partition(":") for line in _NAMES.strip().splitlines())
    for name in names.split(",")
}
"""Codes of languages by their names in lower case."""
