// The editor of the translation of a sentence, in place of the translation.

import { el } from "./elements.js";
import { t } from "./strings.js";

/**
 * @param {EditedSentence[]} parts sentences with translations
 * @param {number} first index of the sentence that is edited first
 * @param {string[]} languages languages of source and target
 * @param {(part: EditedSentence, text: string) => void} save called with a sentence and its new translation, if it differs
 *   from the old one
 * @param {() => void} closed called at the end
 */
export function editor(parts, first, languages, save, closed) {
  /** @type {number} */
  let at;
  const source = el("p", { class: "text", dir: "auto", lang: languages[0] });
  const field = el("textarea", { "aria-label": t("correct"), class: "edit", rows: 3, dir: "auto", lang: languages[1] });
  const counter = el("small", { class: "counter", role: "status" });
  const previous = el("button", { "aria-label": t("previousSentence"), title: t("previousSentence"), onclick: () => show(at - 1) }, "‹");
  const next = el("button", { "aria-label": t("nextSentence"), title: t("nextSentence"), onclick: () => show(at + 1) }, "›");
  const keep = () => {
    const text = field.value.trim();
    const part = parts[at];
    if (!text || text === part.translation.text) return;
    part.translation = { ...part.translation, text };
    save(part, text);
  };
  /** @param {number} i */
  const show = (i) => {
    if (at !== undefined) keep();
    at = i;
    source.textContent = parts[at].text;
    field.value = parts[at].translation.text;
    counter.textContent = t("sentenceOf", at + 1, parts.length);
    previous.hidden = next.hidden = counter.hidden = parts.length < 2;
    previous.disabled = at === 0;
    next.disabled = at === parts.length - 1;
    field.focus();
  };
  /** @param {boolean} isSaved */
  const end = (isSaved) => {
    if (isSaved) keep();
    node.remove();
    closed();
  };
  field.addEventListener("keydown", (event) => {
    if (event.isComposing || event.keyCode === 229) return; // the key is for the input method; Safari says so by its code
    if (event.key === "Enter" && !event.shiftKey) { event.preventDefault(); end(true); }
    if (event.key === "Escape") end(false);
  });
  const node = el("div", { class: "editor" }, source, field,
    el("p", { class: "buttons" }, el("button", { class: "primary", onclick: () => end(true) }, t("save")), el("button", { onclick: () => end(false) }, t("cancel")), el("span", { class: "steps" }, previous, counter, next)));
  return { node, start: () => show(first) };
}
