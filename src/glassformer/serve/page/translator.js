// Translation while one types, sentence by sentence.

import { Failed, post, retrying, saveAs } from "./api.js";
import { el } from "./elements.js";
import { fileTranslation } from "./files.js";
import { glossary } from "./glossary.js";
import { inspect } from "./inspect.js";
import { Translations, sentencesOf } from "./sentences.js";
import { languageName, t } from "./strings.js";
import { Mirror, Words } from "./words.js";

const PAUSE_MS = 250;

/** The two panes of translation. */
export function translator(languages, models, settings) {
  const select = (label, rows) => el("select", { "aria-label": label }, rows.map(([code, name]) => el("option", { value: code }, name)));
  const sources = languages.filter((language) => language.targets.some((code) => code !== language.code));
  const nameOf = (code) => languageName(code, languages.find((language) => language.code === code)?.name);
  const detects = models.some((model) => model.features.includes("detect"));
  const source = select(t("source"), [...(detects ? [["auto", t("detect")]] : []), ...sources.map(({ code }) => [code, nameOf(code)])]);
  const target = select(t("target"), []);
  const input = el("textarea", { "aria-label": t("sourceText"), placeholder: t("placeholder"), spellcheck: "true", autofocus: true });
  const mirror = new Mirror(input);
  const status = el("span", { class: "status", role: "status" });
  const counter = el("small", { class: "counter" });
  const corrections = [];

  const modelOf = () => {
    const from = source.value === "auto" ? (parts.find((part) => part.translation?.source)?.translation.source ?? sources[0]?.code) : source.value;
    return models.find((model) => model.source === from && model.target === target.value);
  };
  const options = () => ({ source: source.value, target: target.value, terms: terms.pairs() });
  let parts = []; // the sentences, with their translations
  let controller = new AbortController();
  let timer;

  const request = async (texts, { source, target, terms }, signal) => {
    const body = { q: texts, source, target, terms, align: true, confidence: true };
    const found = await post("/translate", body, signal);
    return texts.map((text, i) => ({
      text: found.translatedText[i], alignment: found.alignment?.[i] ?? [], words: found.words?.[i] ?? [],
      missing: found.missing?.[i] ?? [], source: found.detectedLanguage?.[i].language ?? source,
    }));
  };
  const translations = new Translations(request);

  const say = (text, isProblem = false) => {
    status.textContent = text ?? "";
    status.classList.toggle("problem", isProblem);
  };

  const show = () => {
    const before = new Map(parts.map((part) => [part.start, part.translation ?? part.previous]));
    const now = options();
    parts = sentencesOf(input.value).map((part) => {
      const translation = translations.find(part.text, now);
      return { ...part, translation, previous: before.get(part.start) }; // shown until there is a translation
    });
    mirror.show(input.value, parts);
    words.show(input.value, parts);
    const detected = source.value === "auto" && parts.find((part) => part.translation)?.translation.source;
    if (detects) source.options[0].textContent = detected ? t("detected", nameOf(detected)) : t("detect");
    counter.textContent = t("characters", input.value.length.toLocaleString(), settings.charLimit.toLocaleString());
    const missing = parts.flatMap((part) => part.translation?.missing ?? []);
    if (missing.length) say(t("missing", missing.join(", ")), true);
    clearAction.hidden = !input.value;
    copyAction.hidden = !parts.length;
    inspectAction.hidden = !modelOf()?.features.includes("inspect") || !parts.length;
  };

  const update = async () => {
    controller.abort();
    controller = new AbortController();
    const { signal } = controller;
    say();
    show();
    try {
      const [sentences, now] = [parts, options()];
      await retrying(() => translations.complete(sentences, now, signal, () => signal.aborted || show()), say, signal);
    } catch (error) {
      if (error.name !== "AbortError") say(error instanceof Failed ? error.message : t("offline"), true);
    }
  };

  const soon = () => {
    clearTimeout(timer);
    show();
    timer = setTimeout(update, PAUSE_MS);
  };

  const terms = glossary(soon);

  const alternatives = async (part, prefix) => {
    const { source: from, target: to } = options();
    const body = { q: part.text, source: from === "auto" ? part.translation.source : from, target: to, prefix, alternatives: 8, beam: 2, align: true, confidence: true };
    const found = await post("/translate", body);
    return found.continuations;
  };

  const choose = (part, { text, alignment = [], words: probabilities = [] }) => {
    translations.set(part.text, options(), { ...part.translation, text, alignment, words: probabilities });
    show();
  };

  const correct = async (part, text) => {
    const { source: from, target: to } = options();
    translations.set(part.text, options(), { ...part.translation, text, alignment: [], words: [] });
    corrections.push({ src: part.text, tgt: text });
    correctionsAction.hidden = false;
    correctionsAction.textContent = t("corrections", corrections.length);
    show();
    if (settings.suggestions) {
      const body = { q: part.text, s: text, source: from === "auto" ? part.translation.source : from, target: to };
      await post("/suggest", body).then(() => say(t("thanks")), (error) => say(error.message, true));
    }
  };

  const words = new Words({ mirror, alternatives, choose, correct, say });
  mirror.onword = (part, word) => words.highlightSource(part, word);

  const targetsOf = (code) => (code === "auto" ? sources.flatMap((s) => s.targets.filter((c) => c !== s.code))
    : languages.find((language) => language.code === code).targets.filter((c) => c !== code));

  const setTargets = (wanted) => {
    const codes = [...new Set(targetsOf(source.value))];
    target.replaceChildren(...codes.map((code) => el("option", { value: code }, nameOf(code))));
    if (codes.includes(wanted)) target.value = wanted;
    history.replaceState(null, "", `#${source.value}-${target.value}`);
  };

  const swap = () => {
    const from = source.value === "auto" ? (modelOf()?.source ?? sources[0].code) : source.value;
    const to = target.value;
    if (!sources.some(({ code }) => code === to) || !targetsOf(to).includes(from)) return;
    const text = words.text();
    source.value = to;
    setTargets(from);
    if (text) input.value = text;
    soon();
  };

  const copy = async () => {
    if (navigator.clipboard) await navigator.clipboard.writeText(words.text());
    else { // pages at http://… of another machine have no clipboard
      getSelection().selectAllChildren(words.node);
      document.execCommand("copy");
      getSelection().removeAllRanges();
    }
    say(t("copied"));
  };
  const inspectAction = el("button", { hidden: true, onclick: () => lookInside() }, t("inspect"));
  const lookInside = () => inspect(modelOf()?.id, (mirror.current(parts) ?? parts[0])?.text ?? "", say);
  const correctionsAction = el("button", { hidden: true, onclick: () => saveAs("corrections.jsonl", corrections.map((row) => `${JSON.stringify(row)}\n`).join("")) });

  const [, from, to] = /^#([\w-]+?)-([\w]+)$/.exec(location.hash) ?? [];
  source.value = [...source.options].some((option) => option.value === from) ? from : (settings.language.source?.code ?? sources[0].code);
  setTargets(to ?? settings.language.target?.code);
  source.addEventListener("change", () => { setTargets(target.value); soon(); });
  target.addEventListener("change", () => { setTargets(target.value); soon(); });
  input.addEventListener("input", soon);
  document.addEventListener("key", soon);
  input.setAttribute("maxlength", settings.charLimit);
  document.addEventListener("keydown", (event) => {
    if (!event.altKey || section.hidden) return;
    const action = { KeyS: swap, KeyC: copy, KeyI: lookInside }[event.code];
    if (action) { event.preventDefault(); action(); }
  });

  const clear = () => { input.value = ""; soon(); input.focus(); };
  const clearAction = el("button", { onclick: clear }, t("clear"));
  const copyAction = el("button", { onclick: copy }, t("copy"));
  const section = el("section", { class: "translator" },
    el("div", { class: "languages" }, source, el("button", { class: "swap", "aria-label": t("swap"), title: `${t("swap")} (Alt + S)`, onclick: swap }, "⇄"), target),
    el("div", { class: "panes" },
      el("div", { class: "pane" }, mirror.node, el("div", { class: "buttons" }, clearAction, counter)),
      el("div", { class: "pane" }, words.node, el("div", { class: "buttons" }, copyAction, words.correctAction, inspectAction, correctionsAction, status))),
    el("div", { class: "more" }, terms.node, fileTranslation(settings, options, say)));
  setTimeout(show);
  return section;
}
