"""Inflection of English and French words for the demo corpus: rules and irregular forms."""

from functools import cache
from typing import Literal

Tense = Literal["present", "past", "future"]

# je, il, nous, ils, the stem of the future, the past participle.
IRREGULAR_VERBS = {
    "aller": ("vais", "va", "allons", "vont", "ir", "allé"),
    "attendre": ("attends", "attend", "attendons", "attendent", "attendr", "attendu"),
    "avoir": ("ai", "a", "avons", "ont", "aur", "eu"),
    "boire": ("bois", "boit", "buvons", "boivent", "boir", "bu"),
    "choisir": ("choisis", "choisit", "choisissons", "choisissent", "choisir", "choisi"),
    "connaître": ("connais", "connaît", "connaissons", "connaissent", "connaîtr", "connu"),
    "courir": ("cours", "court", "courons", "courent", "courr", "couru"),
    "dormir": ("dors", "dort", "dormons", "dorment", "dormir", "dormi"),
    "écrire": ("écris", "écrit", "écrivons", "écrivent", "écrir", "écrit"),
    "endormir": ("endors", "endort", "endormons", "endorment", "endormir", "endormi"),
    "être": ("suis", "est", "sommes", "sont", "ser", "été"),
    "lire": ("lis", "lit", "lisons", "lisent", "lir", "lu"),
    "ouvrir": ("ouvre", "ouvre", "ouvrons", "ouvrent", "ouvrir", "ouvert"),
    "peindre": ("peins", "peint", "peignons", "peignent", "peindr", "peint"),
    "perdre": ("perds", "perd", "perdons", "perdent", "perdr", "perdu"),
    "revenir": ("reviens", "revient", "revenons", "reviennent", "reviendr", "revenu"),
    "rire": ("ris", "rit", "rions", "rient", "rir", "ri"),
    "sortir": ("sors", "sort", "sortons", "sortent", "sortir", "sorti"),
    "suivre": ("suis", "suit", "suivons", "suivent", "suivr", "suivi"),
    "vendre": ("vends", "vend", "vendons", "vendent", "vendr", "vendu"),
    "voir": ("vois", "voit", "voyons", "voient", "verr", "vu"),
    "vouloir": ("veux", "veut", "voulons", "veulent", "voudr", "voulu"),
}
STRONG_STEMS = {"acheter": "achèt"}  # stem before silent endings and in the future


@cache
def principal_parts(infinitive: str) -> tuple[str, str, str, str, str, str]:
    """The je, il, nous and ils forms of the present, the stem of the future and the past participle."""
    if infinitive in IRREGULAR_VERBS:
        return IRREGULAR_VERBS[infinitive]
    stem = infinitive.removesuffix("er")
    strong = STRONG_STEMS.get(infinitive, stem)
    nous = stem + ("eons" if stem.endswith("g") else "ons")
    return f"{strong}e", f"{strong}e", nous, f"{strong}ent", f"{strong}er", f"{stem}é"


@cache
def conjugate(infinitive: str, tense: Tense, person: int, plural: bool) -> str:
    """A finite form of a French verb. The past is the imparfait."""
    *present, future_stem, _ = principal_parts(infinitive)
    form = (person == 3) + 2 * plural
    if tense == "present":
        return present[form]
    if tense == "future":
        return future_stem + ("ai", "a", "ons", "ont")[form]
    stem = "ét" if infinitive == "être" else present[2].removesuffix("ons")
    return stem + ("ais", "ait", "ions", "aient")[form]


def french_plural(singular: str) -> str:
    """The regular plural of a French noun or adjective."""
    if singular.endswith(("s", "x")):
        return singular
    if singular.endswith("al"):
        return singular.removesuffix("l") + "ux"
    return singular + ("x" if singular.endswith("eau") else "s")


def french_feminine(masculine: str) -> str:
    """The regular feminine of a French adjective or participle."""
    if masculine.endswith("e"):
        return masculine
    if masculine.endswith("eux"):
        return masculine.removesuffix("x") + "se"
    return (masculine.removesuffix("er") + "èr" if masculine.endswith("er") else masculine) + "e"


def english_s(word: str) -> str:
    """Regular plural of an English noun, or third person singular of a verb."""
    if word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "ies"
    return word + ("es" if word.endswith(("s", "x", "ch", "sh", "go")) else "s")


def english_past(word: str) -> str:
    """Regular past of an English verb."""
    if word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "ied"
    return word + ("d" if word.endswith("e") else "ed")
