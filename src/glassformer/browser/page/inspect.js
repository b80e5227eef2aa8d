// What happens inside of the model while one types: a frame below the translation, which is drawn again for each change of the sentence.

import { inspectionPage, post } from "./api.js";
import { copy } from "./code.js";
import { el } from "./elements.js";
import { linkTo } from "./link.js";
import { t } from "./strings.js";

const EVENTS = ["input", "change", "selectionchange", "focusin"];

/** @type {Inside | undefined} */
let opened;

/**
 * Show what happens in what a function returns, a sentence and the domain of the model, or hide it again. `begin`: the
 * settings of a link.
 * @param {string} _model which a server needs @param {() => GivenText} given @param {Say} say
 * @param {InsideBegin} [begin]
 */
export function inspect(_model, given, say, begin) {
  if (opened) opened.close();
  else if (given().text.trim()) opened = new Inside(given, say, begin);
}

class Inside {
  /** @param {() => GivenText} given @param {Say} say @param {InsideBegin} [begin] */
  constructor(given, say, begin) {
    this.given = given;
    this.say = say;
    this.isReady = false;
    this.begin = begin;
    this.wanted = begin?.wanted;
    this.view = begin?.view;
    this.frame = el("iframe", { title: t("inspectTitle"), sandbox: "allow-scripts" });
    this.panel = el("section", { class: "inside", "aria-label": t("inspectTitle") },
      el("p", { class: "buttons" }, el("button", { onclick: () => this.copyLink() }, t("copyLink")), el("button", { onclick: () => this.close() }, t("close"))), this.frame);
    addEventListener("message", this.receive);
    for (const name of EVENTS) document.addEventListener(name, this.update);
    document.querySelector("main").append(this.panel);
    this.panel.scrollIntoView({ block: "nearest" });
    inspectionPage().then((page) => { this.frame.srcdoc = page; }, (error) => say(error.message, true));
  }

  receive = (/** @type {MessageEvent} */ { source, data }) => {
    if (source !== this.frame.contentWindow) return;
    if (data.height) this.frame.style.height = `${data.height}px`;
    else if (data.ask) this.answer(data);
    else if (data.scrollTo !== undefined) scrollTo({ top: scrollY + this.frame.getBoundingClientRect().top + data.scrollTo - 12 });
    else if (data.view) this.view = data.view;
    else if (data.wanted) {
      this.wanted = data.wanted;
      this.shown = undefined;
      this.update();
    } else {
      this.isReady = true;
      if (this.begin) this.frame.contentWindow.postMessage({ begin: this.begin }, "*");
      this.update();
    }
  };

  update = async () => {
    const { text, tag } = this.given();
    const shown = JSON.stringify([text, tag]);
    if (!this.isReady || !text.trim() || shown === this.shown) return;
    this.shown = shown;
    this.controller?.abort();
    const { signal } = (this.controller = new AbortController());
    try {
      const record = await post("/inspect", { q: text, tag, ...this.wanted }, signal);
      if (signal.aborted) return;
      this.frame.contentWindow.postMessage(record ?? { message: t("notTranslated") }, "*");
      if (record?.live.hasLens) await this.answer({ ask: "lens", values: {} }); // computed while the record is drawn
    } catch (error) {
      if (!signal.aborted) this.say(error.message, true);
    }
  };

  /** @param {{ ask: string, values: object }} message */
  async answer({ ask, values }) {
    try {
      const answer = await post(`/inspect/${ask}`, values);
      this.frame.contentWindow?.postMessage({ ask, values, answer }, "*");
    } catch (error) {
      this.say(error.message, true);
    }
  }

  async copyLink() {
    const { text, tag } = this.given();
    await copy(linkTo(text, { wanted: this.wanted, view: this.view, tag }));
    this.say(t("copied"));
  }

  close() {
    opened = undefined;
    this.controller?.abort();
    removeEventListener("message", this.receive);
    for (const name of EVENTS) document.removeEventListener(name, this.update);
    this.panel.remove();
  }
}

/**
 * A button that shows what happens in the text that a function returns.
 * @param {() => string} model @param {() => string} textOf
 */
export function inspectButton(model, textOf) {
  return el("button", { type: "button", onclick: () => inspect(model(), () => ({ text: textOf() }), alert) }, t("inspect"));
}
