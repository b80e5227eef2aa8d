// Texts of the interface in English and French.

import { local } from "./storage.js";

export const IS_MAC = /^(?:Mac|iP)/.test(navigator.platform); // where Alt with a letter is another letter
export const ALT = IS_MAC ? "Ctrl + Alt" : "Alt"; // with letters

const STRINGS = {
  en: {
    translate: "Translation", detect: "Detect language", detected: "Detected: {0}", swap: "Swap languages",
    source: "Source language", target: "Target language", sourceText: "Text to translate", targetText: "Translation",
    placeholder: "Type or paste a text, or drop files.", copy: "Copy", copied: "Copied", copyLink: "Copy a link to this view", clear: "Clear",
    inspect: "Look inside", inspectTitle: "Inspection of the sentence", close: "Close", correct: "Correct", save: "Save",
    cancel: "Cancel", undo: "Undo", remove: "Remove", tryAgain: "Try again", corrections: "Download corrections ({0})",
    corrected: "Corrected", thanks: "The correction is kept for training.", stillStored: "Undone here; the server has stored the correction.",
    previousSentence: "Previous sentence", nextSentence: "Next sentence", sentenceOf: "Sentence {0} of {1}", sentences: "{0} of {1} sentences",
    glossary: "Glossary", glossaryOf: "Glossary ({0})", glossaryHelp: "Terms that the translation must contain. Several forms are separated by |. Lines of a table can be pasted.",
    importTerms: "Import a file", exportTerms: "Export", notATerm: "Row {0} is not used: a term and its translation are needed, of at most 200 characters.", formerTerms: "The terms of the glossary of an earlier version are now those of this direction.", tooManyTerms: "Only the first {0} terms are used.",
    glossaryChoice: "Terms of the server", memoryChoice: "Translation memory", tagChoice: "Domain", fromMemory: "From the translation memory, {0}% equal: {1}",
    sameFormat: "the same format", forReview: "XLIFF, for review", asMemory: "TMX, a translation memory",
    files: "Files", fileHelp: "Choose files, or drop them on the page: {0}, up to 4 MB each.", download: "Download {0}", waiting: "Waiting", translated: "Translated", tooLarge: "Larger than 4 MB: split the file.",
    uncertain: "Uncertain: probability {0}", uncertainWords: "Uncertain words", alternatives: "Alternatives", otherWords: "Other words", otherSentences: "Other translations of the sentence", sentence: "This sentence",
    showCode: "Code", code: "This request as code", local: "Texts are translated on this machine. Nothing leaves it.", remote: "Texts are translated by the server {0}, which sends them nowhere else.", example: "Example",
    busy: "The server is busy; trying again in {0} s.", noAnswer: "The server does not answer.", offline: "The server does not answer; trying again in {0} s.", characters: "{0} of {1}",
    tooLong: "Only the first {0} of {1} characters are translated. Translate the rest separately, or as a file.", isTarget: "The text is in {0} already.", noModels: "No model of the server has a page.",
    run: "Run", stop: "Stop", text: "Text", firstText: "First text", secondText: "Second text", maybeSecondText: "Second text, for a model of text pairs", question: "Question", context: "Context", answer: "Answer",
    length: "Maximum number of tokens", temperature: "Temperature", result: "Result", texts: "Texts to compare, one a line", range: "between {0} and {1}",
    compareWith: "Text", help: "Keyboard shortcuts", key: "API key", keyHelp: "This server requires a key.",
    language: "Français", models: "Tasks", noText: "Enter a text.", noMask: "The text has no mask: write <mask> in place of the word to find.", notTranslated: "This text is not translated: it has no words that the model knows.", loading: "The model is being loaded.", loaded: "The model is being loaded: {0}%.", noServer: "The model cannot be loaded: this page belongs on a web server, beside its file model.bin.", beginningCutOff: "The text is longer than {0} tokens: its beginning was cut off.", cutOff: "The text is longer than {0} tokens: its end was cut off.", memory: "The browser has not enough memory for this text or model.", damaged: "The file is damaged: the model is not complete. Copy it again.",
    noWebAssembly: "This browser has no WebAssembly. Open the file in Chrome, Edge, Firefox or Safari of the last two years.",
    notUtf8: "The file is not in UTF-8. Save it as UTF-8 and try again.", noSuchFormat: "This page translates {0} only.", readAs: "Words that the training text does not have, read as: {0}.", missing: "Not in the translation: {0}", truncated: "The translation is cut off at the maximum length: its end is missing.",
    shortcuts: [
      ["Alt + ↓", "alternatives for the word"], ["← →", "from word to word"], ["Alt + S", "swap languages"],
      ["Alt + C", "copy the translation"], ["Alt + I", "look inside the sentence"], ["Ctrl + Enter", "run a form"], ["Esc", "close"],
    ],
    tasks: {
      "classification 1": "Classification of a text", "classification 2": "Classification of a pair of texts", "regression 1": "Number for a text", "regression 2": "Number for a pair of texts",
      regression: "Number for a text or a pair of texts", "text-classification": "Classification of a text or a pair of texts", "token-classification": "Labels of words", "question-answering": "Answers from a text",
      "text-generation": "Continuation of a text", "fill-mask": "Words in place of a mask", "feature-extraction": "Similarity",
      "sentence-similarity": "Similarity", summarization: "Summary", translation: "Translation", "text2text-generation": "Text to text",
    },
  },
  fr: {
    translate: "Traduction", detect: "Détecter la langue", detected: "Langue détectée : {0}", swap: "Inverser les langues",
    source: "Langue source", target: "Langue cible", sourceText: "Texte à traduire", targetText: "Traduction",
    placeholder: "Saisissez ou collez un texte, ou déposez des fichiers.", copy: "Copier", copied: "Copié", copyLink: "Copier un lien vers cette vue", clear: "Effacer",
    inspect: "Voir l’intérieur", inspectTitle: "Inspection de la phrase", close: "Fermer", correct: "Corriger", save: "Enregistrer",
    cancel: "Annuler", undo: "Revenir en arrière", remove: "Retirer", tryAgain: "Réessayer", corrections: "Télécharger les corrections ({0})",
    corrected: "Corrigée", thanks: "La correction est conservée pour l’entraînement.", stillStored: "Annulée ici ; le serveur a conservé la correction.",
    previousSentence: "Phrase précédente", nextSentence: "Phrase suivante", sentenceOf: "Phrase {0} sur {1}", sentences: "{0} phrases sur {1}",
    glossary: "Glossaire", glossaryOf: "Glossaire ({0})", glossaryHelp: "Termes que la traduction doit contenir. Plusieurs formes sont séparées par |. On peut coller les lignes d’un tableau.",
    importTerms: "Importer un fichier", exportTerms: "Exporter", notATerm: "La ligne {0} n’est pas utilisée : il faut un terme et sa traduction, d’au plus 200 caractères.", formerTerms: "Les termes du glossaire d’une version antérieure sont maintenant ceux de cette direction.", tooManyTerms: "Seuls les {0} premiers termes sont utilisés.",
    glossaryChoice: "Termes du serveur", memoryChoice: "Mémoire de traduction", tagChoice: "Domaine",
    fromMemory: "De la mémoire de traduction, identique à {0} % : {1}",
    sameFormat: "le même format", forReview: "XLIFF, pour relecture", asMemory: "TMX, mémoire de traduction",
    files: "Fichiers", fileHelp: "Choisissez des fichiers, ou déposez-les sur la page : {0}, jusqu’à 4 Mo chacun.", download: "Télécharger {0}", waiting: "En attente", translated: "Traduit", tooLarge: "Plus de 4 Mo : divisez le fichier.",
    uncertain: "Incertain : probabilité {0}", uncertainWords: "Mots incertains", alternatives: "Autres traductions", otherWords: "Autres mots", otherSentences: "Autres traductions de la phrase", sentence: "Cette phrase",
    showCode: "Code", code: "Cette requête sous forme de code", local: "Les textes sont traduits sur cette machine. Rien n’en sort.", remote: "Les textes sont traduits par le serveur {0}, qui ne les envoie nulle part ailleurs.", example: "Exemple",
    busy: "Le serveur est occupé ; nouvel essai dans {0} s.", noAnswer: "Le serveur ne répond pas.", offline: "Le serveur ne répond pas ; nouvel essai dans {0} s.", characters: "{0} sur {1}",
    tooLong: "Seuls les {0} premiers caractères sur {1} sont traduits. Traduisez le reste séparément, ou comme fichier.", isTarget: "Le texte est déjà dans cette langue : {0}.", noModels: "Aucun modèle du serveur n’a de page.",
    run: "Lancer", stop: "Arrêter", text: "Texte", firstText: "Premier texte", secondText: "Second texte", maybeSecondText: "Second texte, pour un modèle de paires de textes", question: "Question", context: "Contexte", answer: "Réponse",
    length: "Nombre maximal de tokens", temperature: "Température", result: "Résultat", texts: "Textes à comparer, un par ligne", range: "entre {0} et {1}", compareWith: "Texte",
    help: "Raccourcis clavier", key: "Clé d’accès", keyHelp: "Ce serveur demande une clé.", language: "English",
    noText: "Saisissez un texte.", noMask: "Le texte n’a pas de masque : écrivez <mask> à la place du mot à trouver.", notTranslated: "Ce texte n’est pas traduit : il n’a pas de mots que le modèle connaisse.", loading: "Le modèle est en cours de chargement.", loaded: "Chargement du modèle : {0} %.", noServer: "Le modèle ne peut pas être chargé : cette page doit être sur un serveur web, à côté de son fichier model.bin.", beginningCutOff: "Le texte a plus de {0} tokens : son début a été coupé.", cutOff: "Le texte a plus de {0} tokens : sa fin a été coupée.", memory: "La mémoire du navigateur ne suffit pas pour ce texte ou ce modèle.", damaged: "Le fichier est endommagé : le modèle n’est pas complet. Copiez-le de nouveau.",
    noWebAssembly: "Ce navigateur n’a pas WebAssembly. Ouvrez le fichier dans un Chrome, Edge, Firefox ou Safari des deux dernières années.",
    notUtf8: "Le fichier n’est pas en UTF-8. Enregistrez-le en UTF-8 et réessayez.", noSuchFormat: "Cette page ne traduit que {0}.",
    models: "Tâches", readAs: "Mots absents du texte d’entraînement, lus comme : {0}.", missing: "Absent de la traduction : {0}", truncated: "La traduction est coupée à la longueur maximale : la fin manque.",
    shortcuts: [
      ["Alt + ↓", "autres traductions du mot"], ["← →", "de mot en mot"], ["Alt + S", "inverser les langues"],
      ["Alt + C", "copier la traduction"], ["Alt + I", "voir l’intérieur de la phrase"], ["Ctrl + Entrée", "lancer un formulaire"],
      ["Échap", "fermer"],
    ],
    tasks: {
      "classification 1": "Classification d’un texte", "classification 2": "Classification d’une paire de textes", "regression 1": "Nombre pour un texte", "regression 2": "Nombre pour une paire de textes",
      regression: "Nombre pour un texte ou une paire de textes", "text-classification": "Classification d’un texte ou d’une paire de textes", "token-classification": "Étiquettes des mots", "question-answering": "Réponses tirées d’un texte",
      "text-generation": "Suite d’un texte", "fill-mask": "Mots à la place d’un masque", "feature-extraction": "Similarité",
      "sentence-similarity": "Similarité", summarization: "Résumé", translation: "Traduction", "text2text-generation": "Texte à texte",
    },
  },
};

/** Language of the interface: chosen before, else that of the browser. */
export const interfaceLanguage = local.get("interface") ?? (navigator.language.startsWith("fr") ? "fr" : "en");

/**
 * A text of the interface, with values in place of {0}, {1}.
 * @param {keyof (typeof STRINGS)["en" | "fr"]} name @param {...(string | number)} values @returns {any}
 */
export function t(name, ...values) {
  const text = STRINGS[interfaceLanguage][name];
  return typeof text === "string" ? text.replace(/\{(\d)\}/g, (_, i) => String(values[i])) : text;
}

const languageNames = new Intl.DisplayNames([interfaceLanguage], { type: "language", fallback: "none" });

/**
 * Name of a language in the language of the interface, else the name that is given.
 * @param {string} code @param {string} name
 */
export function languageName(code, name = code) {
  let found;
  try {
    found = languageNames.of(code);
  } catch { /* not the code of a language */ }
  return found ? found[0].toUpperCase() + found.slice(1) : name;
}
