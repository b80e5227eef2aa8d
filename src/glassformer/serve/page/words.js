// Words of a text and of its translation: highlighting of what belongs together, alternatives, corrections.

import { el } from "./elements.js";
import { t } from "./strings.js";

const UNCERTAIN = 0.5;

/** The words of a text with their positions. */
const wordsOf = (text) => [...text.matchAll(/\S+/g)];

/** A text field over a copy of its text, in which words are highlighted. */
export class Mirror {
  constructor(input) {
    this.input = input;
    this.copy = el("div", { class: "copy", "aria-hidden": "true" });
    this.node = el("div", { class: "mirror" }, this.copy, input);
    this.onword = () => {};
    input.addEventListener("mousemove", (event) => this.over(document.elementsFromPoint(event.clientX, event.clientY)));
    input.addEventListener("mouseleave", () => this.onword());
    document.addEventListener("selectionchange", () => {
      if (document.activeElement === input) this.atCaret();
    });
  }

  show(text, parts) {
    this.spans = parts.map(() => []);
    const nodes = [];
    let end = 0;
    parts.forEach((part, i) => {
      for (const match of wordsOf(part.text)) {
        const start = part.start + match.index;
        const span = el("span", { "data-part": i, "data-word": this.spans[i].length }, match[0]);
        this.spans[i].push(span);
        nodes.push(text.slice(end, start), span);
        end = start + match[0].length;
      }
    });
    this.copy.replaceChildren(...nodes, `${text.slice(end)}\n`);
    this.starts = parts.map((part) => part.start);
  }

  over(elements) {
    const span = elements.find((element) => element.parentNode === this.copy && element.dataset.word);
    this.onword(span && Number(span.dataset.part), span && Number(span.dataset.word));
  }

  atCaret() {
    const caret = this.input.selectionStart;
    const part = (this.starts ?? []).findLastIndex((start) => start <= caret);
    if (part < 0) return;
    let end = this.starts[part];
    for (const match of wordsOf(this.input.value.slice(end))) {
      if (end + match.index <= caret && caret <= end + match.index + match[0].length) {
        this.onword(part, wordsOf(this.input.value.slice(end, end + match.index)).length);
        return;
      }
    }
    this.onword();
  }

  /** The sentence at the caret. */
  current(parts) {
    return parts.findLast((part) => part.start <= this.input.selectionStart);
  }

  highlight(part, words) {
    this.spans?.forEach((spans, i) => spans.forEach((span, k) => span.classList.toggle("on", i === part && words.includes(k))));
  }
}

/** The translation, as words that can be hovered, focused and replaced. */
export class Words {
  constructor({ mirror, alternatives, choose, correct, say }) {
    Object.assign(this, { mirror, alternatives, choose, correct, say });
    this.node = el("div", { class: "output", role: "group", "aria-label": t("targetText"), tabindex: "-1" });
    this.correctAction = el("button", { hidden: true, onclick: () => this.edit() }, t("correct"));
    this.spans = [];
    this.parts = [];
    this.focused = [0, 0];
    this.node.addEventListener("mouseleave", () => this.highlight());
  }

  show(text, parts) {
    this.latest = [text, parts];
    if (this.menu || this.editing) return;
    this.shown = this.latest;
    const hadFocus = this.node.contains(document.activeElement);
    this.parts = parts;
    this.spans = parts.map(() => []);
    const nodes = [];
    let end = 0;
    parts.forEach((part, i) => {
      nodes.push(text.slice(end, part.start));
      end = part.start + part.text.length;
      const { translation } = part;
      if (!translation) {
        nodes.push(el("span", { class: "waiting" }, part.previous?.text ?? "…"));
        return;
      }
      const sentence = el("span", { "data-part": i });
      let last = 0;
      for (const match of wordsOf(translation.text)) {
        sentence.append(translation.text.slice(last, match.index));
        last = match.index + match[0].length;
        sentence.append(this.word(i, this.spans[i].length, match[0], translation));
      }
      nodes.push(sentence);
    });
    this.node.replaceChildren(...nodes, text.slice(end));
    this.correctAction.hidden = !parts.some((part) => part.translation);
    const [part, word] = this.focused;
    const first = this.spans[part]?.[word] ?? this.spans.flat()[0];
    first?.setAttribute("tabindex", "0");
    if (hadFocus) first?.focus();
  }

  word(part, word, text, { words }) {
    const p = words[word]?.[0] === text ? words[word][1] : 1;
    const span = el("span", {
      class: p < UNCERTAIN ? "word uncertain" : "word", tabindex: "-1", role: "button", "aria-haspopup": "listbox",
      title: p < UNCERTAIN ? t("uncertain", p.toFixed(2)) : null,
      onmouseenter: () => this.highlight(part, [word]), onfocus: () => this.focus(part, word), onblur: () => this.highlight(),
      onclick: () => this.open(part, word), onkeydown: (event) => this.key(event, part, word),
    }, text);
    this.spans[part].push(span);
    return span;
  }

  focus(part, word) {
    for (const span of this.spans.flat()) span.setAttribute("tabindex", "-1");
    this.spans[part][word].setAttribute("tabindex", "0");
    this.focused = [part, word];
    this.highlight(part, [word]);
  }

  key(event, part, word) {
    if ((event.altKey && event.key === "ArrowDown") || event.key === "Enter" || event.key === " ") this.open(part, word);
    else if (event.key === "ArrowRight" || event.key === "ArrowLeft") {
      const all = this.spans.flat();
      all[all.indexOf(this.spans[part][word]) + (event.key === "ArrowRight" ? 1 : -1)]?.focus();
    } else return;
    event.preventDefault();
  }

  /** Highlight words of the translation and the words of the source that belong to them. */
  highlight(part, words = []) {
    const pairs = this.parts[part]?.translation?.alignment ?? [];
    this.mark(part, words);
    this.mirror.highlight(part, pairs.filter(([, k]) => words.includes(k)).map(([s]) => s));
  }

  /** Highlight a word of the source and the words of the translation that belong to it. */
  highlightSource(part, word) {
    const pairs = this.parts[part]?.translation?.alignment ?? [];
    this.mirror.highlight(part, word === undefined ? [] : [word]);
    this.mark(part, pairs.filter(([s]) => s === word).map(([, k]) => k));
  }

  mark(part, words) {
    this.spans.forEach((spans, i) => spans.forEach((span, k) => span.classList.toggle("on", i === part && words.includes(k))));
  }

  text() {
    return this.node.textContent.trim() === "…" ? "" : this.node.textContent;
  }

  /** The words before a word, as the beginning of a translation. */
  prefix(part, word) {
    return this.spans[part].slice(0, word).map((span) => span.textContent).join(" ");
  }

  async open(part, word) {
    this.close();
    const request = (this.request = {});
    const sentence = this.parts[part];
    const span = this.spans[part][word];
    const prefix = this.prefix(part, word);
    let found;
    this.node.setAttribute("aria-busy", "true");
    try {
      found = await this.alternatives(sentence, prefix);
    } catch (error) {
      this.say(error.message, true);
      return;
    } finally {
      this.node.removeAttribute("aria-busy");
    }
    if (this.request !== request || !span.isConnected) return;
    const next = found.map((record) => [record, record.text.slice(prefix.length).trim().split(/\s+/)])
      .filter(([, [first]]) => first && first !== span.textContent);
    if (!next.length) { this.say(t("none")); return; }
    const items = next.map(([record, [first, ...rest]]) => el("li", { role: "option", tabindex: "-1",
      onclick: () => this.take(sentence, part, word, record) }, el("b", {}, first), ` ${rest.slice(0, 4).join(" ")}`));
    const list = el("ul", { role: "listbox", "aria-label": t("alternatives"), class: "menu", onkeydown: (event) => this.menuKey(event, items, part, word) }, items);
    list.addEventListener("focusout", (event) => { if (!list.contains(event.relatedTarget)) this.close(); });
    document.body.append(list);
    this.menu = list;
    const box = span.getBoundingClientRect();
    const above = box.bottom + list.offsetHeight + 8 > innerHeight && box.top > list.offsetHeight + 8;
    list.style.setProperty("left", `${Math.max(8, Math.min(box.left - 12, innerWidth - list.offsetWidth - 8)) + scrollX}px`);
    list.style.setProperty("top", `${(above ? box.top - list.offsetHeight - 4 : box.bottom + 4) + scrollY}px`);
    items[0].focus();
  }

  menuKey(event, items, part, word) {
    const at = items.indexOf(document.activeElement);
    if (event.key === "ArrowDown") items[(at + 1) % items.length].focus();
    else if (event.key === "ArrowUp") items[(at + items.length - 1) % items.length].focus();
    else if (event.key === "Enter" || event.key === " ") items[at].click();
    else if (event.key === "Escape" || event.key === "Tab") { this.close(); this.spans[part]?.[word]?.focus(); }
    else return;
    event.preventDefault();
  }

  close() {
    const { menu } = this;
    this.menu = null;
    menu?.remove();
    this.catchUp();
  }

  /** Show what came while a menu or the editor was open. */
  catchUp() {
    if (this.latest !== this.shown) this.show(...this.latest);
  }

  take(sentence, part, word, record) {
    this.close();
    this.focused = [part, word];
    this.spans[part]?.[word]?.focus();
    this.choose(sentence, record);
  }

  /** Edit the translation of the sentence that was focused last. */
  edit() {
    const part = this.parts[this.focused[0]]?.translation ? this.parts[this.focused[0]] : this.parts.find((p) => p.translation);
    const field = el("textarea", { "aria-label": t("correct"), class: "edit", rows: 2 });
    field.value = part.translation.text;
    const end = (save) => {
      this.editing = this.correctAction.hidden = this.node.hidden = false;
      editor.remove();
      this.catchUp();
      this.correctAction.focus();
      if (save && field.value.trim()) this.correct(part, field.value.trim());
    };
    const editor = el("div", { class: "editor" }, el("p", { class: "text" }, part.text), field,
      el("p", { class: "buttons" }, el("button", { class: "primary", onclick: () => end(true) }, t("save")), el("button", { onclick: () => end(false) }, t("cancel"))));
    field.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !event.shiftKey) { event.preventDefault(); end(true); }
      if (event.key === "Escape") end(false);
    });
    this.editing = this.correctAction.hidden = this.node.hidden = true;
    this.node.after(editor);
    field.focus();
  }
}
