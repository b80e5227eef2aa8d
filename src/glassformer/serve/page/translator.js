// Translation while one types, sentence by sentence.

import { IS_LOCAL, post } from "./api.js";
import { Choices } from "./choices.js";
import { codeButton, copy } from "./code.js";
import { editor } from "./editor.js";
import { el } from "./elements.js";
import { emptyState } from "./empty.js";
import { fileTranslation } from "./files.js";
import { Glossary, usedOf } from "./glossary.js";
import { inspect } from "./inspect.js";
import { Languages } from "./languages.js";
import { linkedInside, linkedText } from "./link.js";
import { Menu } from "./menu.js";
import { Mirror } from "./mirror.js";
import { Output } from "./output.js";
import { Overrides } from "./overrides.js";
import { Requests } from "./requests.js";
import { isDraft, sentencesOf, wordsOf } from "./sentences.js";
import { kept } from "./session.js";
import { showStatus } from "./status.js";
import { local } from "./storage.js";
import { ALT, IS_MAC, t } from "./strings.js";
import { views } from "./views.js";

const MANY = 20; // sentences, from which on the number of those that are translated is shown
const ZIP = "PK\x03\x04"; // the beginning of a packed file, such as .docx
const N_SENTENCES = 3; // other translations of a whole sentence

/**
 * The two panes of translation, and the files.
 * @param {LanguageRow[]} rows @param {ModelRow[]} models @param {Settings} settings
 */
export function translator(rows, models, settings) {
  const input = el("textarea", { "aria-label": t("sourceText"), placeholder: t("placeholder"), spellcheck: "true", autofocus: true, dir: "auto" });
  const mirror = new Mirror(input);
  const output = new Output();
  const status = el("span", { class: "status", role: "status" });
  const progress = el("span", { class: "progress" });
  const counter = el("small", { class: "counter" });
  const tooLong = el("p", { class: "problem", role: "alert", hidden: true });
  /** @type {Sentence[]} */
  let parts = []; // the sentences, with their translations
  let isHeld = false; // while a menu or the editor is open, the translation stays as it is
  /** @type {Menu} */
  let menu;
  let opening;

  /** @type {Say} */
  const say = (...message) => showStatus(status, ...message);
  const options = () => ({ source: languages.source.value, target: languages.target.value, terms: glossary.used, ...choices.fields });
  /** @param {Sentence} part */
  const pairOf = (part) => (languages.isAuto ? [part.translation.source, languages.target.value] : languages.pair);
  /** @param {Sentence} part */
  const bodyFor = (part) => {
    const [source, target] = pairOf(part);
    return { q: part.text, source, target, terms: glossary.used, ...choices.fields };
  };

  /** @type {RequestOptions["request"]} */
  const request = async (texts, wanted, signal) => {
    const found = await post("/translate", { q: texts, ...wanted, align: true, confidence: true }, signal);
    return texts.map((_, i) => ({
      text: found.translatedText[i], alignment: found.alignment?.[i] ?? [], words: found.words?.[i] ?? [],
      readAs: found.readAs?.[i] ?? [], missing: found.missing?.[i] ?? [], truncated: found.truncated?.[i], match: found.match?.[i], source: found.detectedLanguage?.[i].language ?? wanted.source,
    }));
  };
  /** @type {RequestOptions["found"]} */
  const found = (start, draft) => {
    const part = draft && parts.find((part) => part.start === start);
    if (part) part.previous = draft; // a sentence that has gone on in the meantime
    show();
    mirror.atCaret();
    detect();
  };
  let isWaiting = false; // for a server that is busy or does not answer
  /** @type {Say} */
  const wait = (...message) => {
    isWaiting = message.length > 0;
    say(...message);
  };
  const requests = new Requests({ request, found, say: wait, failed: (error) => say(error.message, true) });

  const show = () => {
    const before = new Map(parts.map((part) => [part.start, part.translation ?? part.previous]));
    const text = input.value.slice(0, settings.charLimit).replace(/[\ud800-\udbff]$/, ""); // no half of a character
    parts = sentencesOf(text).map((part) => {
      const translation = overrides.find(part.text, languages.target.value) ?? requests.find(part.text);
      return { ...part, translation, previous: before.get(part.start) }; // shown until there is a translation
    });
    mirror.show(input.value, parts);
    if (!isHeld) output.show(text, parts);
    const n = input.value.length;
    counter.textContent = t("characters", n.toLocaleString(), settings.charLimit.toLocaleString());
    tooLong.hidden = n <= settings.charLimit;
    if (!tooLong.hidden) tooLong.textContent = t("tooLong", settings.charLimit.toLocaleString(), n.toLocaleString());
    const done = parts.filter((part) => part.translation).length;
    progress.textContent = parts.length > MANY && done < parts.length ? t("sentences", done, parts.length) : "";
    const missing = parts.flatMap((part) => part.translation?.missing ?? []);
    const problems = [missing.length && t("missing", missing.join(", ")), parts.some((part) => part.translation?.truncated) && t("truncated")].filter(Boolean);
    const read = parts.flatMap((part) => part.translation?.readAs ?? []).map((pair) => pair.join(" → "));
    const notes = [...problems, ...(read.length ? [t("readAs", read.join(", "))] : [])];
    if (notes.length) say(notes.join(" "), problems.length > 0);
    showActions(done);
  };

  /** @param {number} done */
  const showActions = (done) => {
    const hasText = parts.length > 0;
    empty.hidden = input.value !== "" || isHeld;
    output.node.hidden = !empty.hidden || editing !== undefined;
    clearAction.hidden = !input.value;
    copyAction.hidden = !hasText;
    codeAction.hidden = !hasText || IS_LOCAL;
    copyAction.disabled = done < parts.length;
    correctAction.hidden = !done || editing !== undefined;
    inspectAction.hidden = !hasText || !languages.model?.features.includes("inspect");
    uncertainLabel.hidden = !output.hasUncertain;
    overrides.show(languages.pair);
  };

  const update = () => {
    if (!isWaiting) say();
    show();
    const missing = parts.filter((part) => !part.translation);
    requests.want(missing, missing.find((part) => isDraft(part, input.selectionStart)));
    detect();
  };

  /** Show the language that most of the text is in. */
  const detect = () => {
    if (!languages.isAuto) return;
    const sizes = new Map();
    for (const { text, translation } of parts) if (translation) sizes.set(translation.source, (sizes.get(translation.source) ?? 0) + text.length);
    const [code] = [...sizes].sort(([, a], [, b]) => b - a)[0] ?? [];
    if (!code && parts.length) return; // not known yet
    const message = languages.showDetected(code);
    if (message) say(message);
  };

  const configure = () => {
    const pair = languages.pair;
    choices.showTags(languages.isAuto ? [] : languages.model?.tags ?? []);
    glossary.show(pair, pair.map((code) => languages.name(code)));
    requests.use(options());
    input.lang = mirror.copy.lang = pair[0];
    output.node.lang = pair[1];
    swapAction.hidden = !languages.canSwap;
    empty.show(languages.isAuto ? undefined : pair[0]);
  };
  const changed = () => { configure(); update(); };

  const languages = new Languages(rows, models, settings, changed);
  const glossary = new Glossary(changed);
  const choices = new Choices(settings, changed);
  /** @param {Override} translation */
  const undone = (translation) => translation?.isCorrected && settings.suggestions && say(t("stillStored"));
  const overrides = new Overrides(update, undone);

  /** @param {Sentence} part @param {number[]} target @param {number[]} source */
  const highlight = (part, target, source) => {
    output.highlight(part, target);
    mirror.highlight(part, source);
  };
  /** @param {Sentence} part */
  const alignmentOf = (part) => part?.translation?.alignment ?? [];
  output.onword = (part, word) => highlight(part, [word], alignmentOf(part).filter(([, k]) => k === word).map(([s]) => s));
  mirror.onword = (part, word) => highlight(part, alignmentOf(part).filter(([s]) => s === word).map(([, k]) => k), [word]);

  /** @param {Sentence} part @param {Partial<SentenceTranslation>} chosen */
  const choose = (part, { text, alignment = [], words = [], missing = [] }) =>
    overrides.set(part.text, pairOf(part), { text, alignment, words, missing, source: part.translation.source });

  output.onopen = async (part, index, word) => {
    menu?.close();
    const own = (opening = {});
    const prefix = output.prefix(part, index);
    const body = bodyFor(part);
    /** @type {TranslationOutput[]} */
    let others;
    /** @type {string[]} */
    let sentences;
    output.node.setAttribute("aria-busy", "true");
    try {
      [{ continuations: others }, { alternatives: sentences = [] }] = await Promise.all([
        post("/translate", { ...body, prefix, alternatives: 8, beam: 2, align: true, confidence: true })
          .catch((error) => (say(error.message, true), { continuations: [] })), // a sentence that the model cannot read at once has none
        post("/translate", { ...body, alternatives: N_SENTENCES }),
      ]);
    } catch (error) {
      say(error.message, true);
      return;
    } finally {
      output.node.removeAttribute("aria-busy");
    }
    if (opening !== own || !word.isConnected) return;
    const next = others
      .map((record) => ({ record, rest: record.text.slice(prefix.length).trimStart() }))
      .map(({ record, rest }) => ({ record, rest, words: wordsOf(rest) }))
      .filter(({ words: [first] }) => first && first[0] !== word.textContent)
      .map(/** @returns {MenuRow} */ ({ record, rest, words: [[first], ...others] }) => (
        [first, rest.slice(first.length, others[4]?.index).trim(), () => choose(part, record)]));
    const whole = sentences.filter((text) => text !== part.translation.text)
      .map(/** @returns {MenuRow} */ (text) => ["", text, () => choose(part, { text })]);
    isHeld = true;
    menu = new Menu(word, [
      [t("otherWords"), next], [t("otherSentences"), whole], [t("sentence"), [[t("correct"), "", () => edit(part)]]],
    ], (isReturning) => {
      isHeld = false;
      show();
      if (isReturning) output.focus(part, index);
    });
  };

  /** Edit translations, first that of a sentence. */
  /** @type {ReturnType<typeof editor>} */
  let editing;
  /** @param {Sentence | undefined} part */
  const edit = (part) => {
    const translated = parts.filter((part) => part.translation).map((part) => ({ ...part, pair: pairOf(part) }));
    const first = Math.max(0, translated.findIndex(({ start }) => start === part?.start));
    editing = editor(translated, first, languages.pair, correct, () => {
      editing = undefined;
      isHeld = false;
      show();
      correctAction.focus();
    });
    isHeld = true;
    output.node.after(editing.node);
    show();
    editing.start();
  };

  /** @param {EditedSentence} part @param {string} text */
  const correct = (part, text) => {
    const { pair } = part; // the languages may have changed since
    overrides.set(part.text, pair, { text, alignment: [], words: [], missing: [], source: pair[0], isCorrected: true });
    if (!settings.suggestions) return;
    post("/suggest", { q: part.text, s: text, source: pair[0], target: pair[1] }).then(() => say(t("thanks")), (error) => say(error.message, true));
  };

  const swap = () => {
    if (!languages.canSwap || editing) return;
    if (output.isComplete) input.value = output.text(); // else the text stays, rather than half a translation
    languages.swap();
  };
  const copyOutput = async () => {
    if (!output.isComplete || editing) return;
    await copy(output.text());
    say(t("copied"));
  };
  const clear = () => {
    input.focus();
    input.select();
    document.execCommand("delete"); // the browser can undo it
    if (input.value) { input.value = ""; update(); }
  };
  let isInOutput = false; // the last focus of both texts: a button or the view of the inside may have it now
  input.addEventListener("focus", () => { isInOutput = false; });
  output.node.addEventListener("focusin", () => { isInOutput = true; });
  const current = () => ((isInOutput && output.currentPart) || mirror.current()) ?? parts[0];
  /** @param {InsideBegin} [begin] */
  const lookInside = (begin) => inspect(languages.model?.id, () => ({ text: current()?.text ?? "", tag: choices.fields.tag }), say, begin);

  const swapAction = el("button", { class: "swap", "aria-label": t("swap"), title: `${t("swap")} (${ALT} + S)`, onclick: swap }, "⇄");
  const clearAction = el("button", { onclick: clear }, t("clear"));
  const copyAction = el("button", { onclick: copyOutput, title: `${ALT} + C` }, t("copy"));
  const correctAction = el("button", { onclick: () => edit(current()) }, t("correct"));
  const inspectAction = el("button", { onclick: () => lookInside(), title: `${ALT} + I` }, t("inspect"));
  const codeAction = codeButton(() => ["/translate", { q: input.value.slice(0, settings.charLimit), ...options() }], settings.keyRequired);
  const uncertain = el("input", { type: "checkbox", onchange: () => showUncertain(uncertain.checked) });
  const uncertainLabel = el("label", { class: "switch" }, uncertain, el("span", { class: "uncertain" }, t("uncertainWords")));
  /** @param {boolean} isOn */
  const showUncertain = (isOn) => {
    local.set("uncertain", isOn ? "on" : "off");
    output.node.classList.toggle("unmarked", !isOn);
  };
  uncertain.checked = local.get("uncertain") !== "off";
  showUncertain(uncertain.checked);
  const empty = emptyState((example) => {
    input.value = example;
    update();
    input.focus();
  }, languages.codes);

  input.value = kept("text", () => input.value) ?? "";
  if (linkedText !== null) input.value = linkedText;
  input.addEventListener("input", () => { opening = undefined; update(); }); // no menu takes the focus while one types
  document.addEventListener("key", update); // what was refused is asked again
  document.addEventListener("keydown", (event) => {
    if (!event.altKey || event.ctrlKey !== IS_MAC || event.getModifierState("AltGraph") || section.hidden) return;
    const action = { KeyS: swap, KeyC: copyOutput, KeyI: lookInside }[event.code];
    if (action) { event.preventDefault(); action(); }
  });

  const text = el("div", { class: "panes" },
    el("div", { class: "pane" }, mirror.node, tooLong, el("div", { class: "buttons" }, clearAction, counter)),
    el("div", { class: "pane" }, empty, output.node,
      el("div", { class: "buttons" }, copyAction, correctAction, overrides.undoAction, inspectAction, codeAction, overrides.downloadAction, uncertainLabel, progress, status)));
  const files = fileTranslation(settings, fieldsOf, () => tabs.open(1));
  const tabs = views([[t("text"), text], [t("files"), files]]);

  /**
   * The fields of the request for a file, with the terms of its direction.
   * @param {File} file @returns {Promise<Record<string, string>>}
   */
  async function fieldsOf(file) {
    const { source, target } = options();
    const froms = source === "auto" ? await sourcesOf(file, target) : [source];
    const terms = froms.flatMap((from) => glossary.termsOf([from, target]));
    return { source, target, terms: JSON.stringify(usedOf(terms)), ...choices.fields };
  }

  /**
   * The language of a file; all that it may be in, if it is packed.
   * @param {File} file @param {string} target @returns {Promise<string[]>}
   */
  async function sourcesOf(file, target) {
    const text = await file.slice(0, 4000).text();
    if (text.startsWith(ZIP)) return languages.sourcesOf(target);
    const beginning = text.replace(/<[^>]*>/g, " ").replaceAll("\0", "");
    const [found] = beginning.trim() ? await post("/detect", { q: beginning }) : [];
    return [found?.language ?? languages.pair[0]];
  }

  const section = el("section", { class: "translator" },
    tabs.node,
    el("div", { class: "languages" }, languages.source, swapAction, languages.target),
    text, files, choices.node, glossary.node);
  configure();
  setTimeout(() => {
    if (linkedInside) choices.chooseTag(linkedInside.tag);
    changed();
    if (linkedInside) lookInside(linkedInside);
  });
  return section;
}
