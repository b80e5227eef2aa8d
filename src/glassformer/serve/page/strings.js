// Texts of the interface in English and French.

const STRINGS = {
  en: {
    translate: "Translation", detect: "Detect language", detected: "Detected: {0}", swap: "Swap languages",
    source: "Source language", target: "Target language", sourceText: "Text to translate", targetText: "Translation",
    placeholder: "Type or paste a text, or drop a file.", copy: "Copy", copied: "Copied", clear: "Clear",
    inspect: "Look inside", inspectTitle: "Inspection of the sentence", close: "Close", correct: "Correct", save: "Save",
    cancel: "Cancel", corrections: "Download corrections ({0})", thanks: "The correction is kept for training.",
    glossary: "Glossary", glossaryHelp: "One term a line: term = translation. Several forms are separated by |.", notATerm: "Line {0} is not used: it has not the form term = translation.",
    file: "Translate a file", fileHelp: "{0}, up to 4 MB", download: "Download {0}", working: "Translating {0} of {1}",
    uncertain: "Uncertain: probability {0}", alternatives: "Alternatives", none: "No other translation",
    busy: "The server is busy; trying again in {0} s.", offline: "The server does not answer.", characters: "{0} of {1}",
    run: "Run", stop: "Stop", text: "Text", question: "Question", context: "Context", answer: "Answer",
    length: "Maximum number of tokens", temperature: "Temperature", result: "Result", texts: "Texts to compare, one a line",
    compareWith: "Text", help: "Keyboard shortcuts", key: "API key", keyHelp: "This server requires a key.",
    language: "Français", models: "Tasks", missing: "Not in the translation: {0}", words: "Words of the translation",
    shortcuts: [
      ["Alt + ↓", "alternatives for the word"], ["← →", "from word to word"], ["Alt + S", "swap languages"],
      ["Alt + C", "copy the translation"], ["Alt + I", "look inside the sentence"], ["Ctrl + Enter", "run a form"], ["Esc", "close"],
    ],
    tasks: {
      "text-classification": "Classification", "token-classification": "Labels of words", "question-answering": "Answers from a text",
      "text-generation": "Continuation of a text", "fill-mask": "Words in place of a mask", "feature-extraction": "Similarity",
      "sentence-similarity": "Similarity", summarization: "Summary", translation: "Translation", "text2text-generation": "Text to text",
    },
  },
  fr: {
    translate: "Traduction", detect: "Détecter la langue", detected: "Langue détectée : {0}", swap: "Inverser les langues",
    source: "Langue source", target: "Langue cible", sourceText: "Texte à traduire", targetText: "Traduction",
    placeholder: "Saisissez ou collez un texte, ou déposez un fichier.", copy: "Copier", copied: "Copié", clear: "Effacer",
    inspect: "Voir l’intérieur", inspectTitle: "Inspection de la phrase", close: "Fermer", correct: "Corriger",
    save: "Enregistrer", cancel: "Annuler", corrections: "Télécharger les corrections ({0})",
    thanks: "La correction est conservée pour l’entraînement.", glossary: "Glossaire",
    glossaryHelp: "Un terme par ligne : terme = traduction. Plusieurs formes sont séparées par |.",
    notATerm: "La ligne {0} n’est pas utilisée : elle n’a pas la forme terme = traduction.",
    file: "Traduire un fichier", fileHelp: "{0}, jusqu’à 4 Mo", download: "Télécharger {0}",
    working: "Traduction de {0} sur {1}", uncertain: "Incertain : probabilité {0}", alternatives: "Autres traductions",
    none: "Aucune autre traduction", busy: "Le serveur est occupé ; nouvel essai dans {0} s.",
    offline: "Le serveur ne répond pas.", characters: "{0} sur {1}", run: "Lancer", stop: "Arrêter", text: "Texte",
    question: "Question", context: "Contexte", answer: "Réponse", length: "Nombre maximal de tokens",
    temperature: "Température", result: "Résultat", texts: "Textes à comparer, un par ligne", compareWith: "Texte",
    help: "Raccourcis clavier", key: "Clé d’accès", keyHelp: "Ce serveur demande une clé.", language: "English",
    models: "Tâches", missing: "Absent de la traduction : {0}", words: "Mots de la traduction",
    shortcuts: [
      ["Alt + ↓", "autres traductions du mot"], ["← →", "de mot en mot"], ["Alt + S", "inverser les langues"],
      ["Alt + C", "copier la traduction"], ["Alt + I", "voir l’intérieur de la phrase"], ["Ctrl + Entrée", "lancer un formulaire"],
      ["Échap", "fermer"],
    ],
    tasks: {
      "text-classification": "Classification", "token-classification": "Étiquettes des mots", "question-answering": "Réponses tirées d’un texte",
      "text-generation": "Suite d’un texte", "fill-mask": "Mots à la place d’un masque", "feature-extraction": "Similarité",
      "sentence-similarity": "Similarité", summarization: "Résumé", translation: "Traduction", "text2text-generation": "Texte à texte",
    },
  },
};

/** Language of the interface: chosen before, else that of the browser. */
export const interfaceLanguage = localStorage.getItem("interface") ?? (navigator.language.startsWith("fr") ? "fr" : "en");

/** A text of the interface, with values in place of {0}, {1}. */
export function t(name, ...values) {
  const text = STRINGS[interfaceLanguage][name];
  return typeof text === "string" ? text.replace(/\{(\d)\}/g, (_, i) => values[i]) : text;
}

const languageNames = new Intl.DisplayNames([interfaceLanguage], { type: "language", fallback: "none" });

/** Name of a language in the language of the interface, else the name that is given. */
export function languageName(code, name = code) {
  let found;
  try {
    found = languageNames.of(code);
  } catch { /* not the code of a language */ }
  return found ? found[0].toUpperCase() + found.slice(1) : name;
}
