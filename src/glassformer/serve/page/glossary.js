// Terms that translations must contain, kept in this browser for each direction of translation.

import { el } from "./elements.js";
import { saveAs } from "./save.js";
import { local } from "./storage.js";
import { t } from "./strings.js";

const MAX_TERMS = 500; // of a request
const MAX_CHARACTERS = 200; // of a side
const FORMER = "glossary"; // lines `term = translation`, which an earlier version stored for all directions

/**
 * The terms of a request.
 * @param {string[][]} terms
 */
export const usedOf = (terms) => terms.slice(0, MAX_TERMS);

/** @param {string} side */
const sideIsValid = (side) => side.length <= MAX_CHARACTERS && side.split("|").every((form) => form.trim());
/** @param {string[]} row */
const isTerm = (row) => row.length === 2 && row.every(sideIsValid);

/**
 * Rows of lines of the form `term = translation`, or separated by a tab.
 * @param {string} text
 */
function rowsOf(text) {
  return text.split(/\r?\n/).map((line) => line.split(line.includes("\t") ? "\t" : "=").map((side) => side.trim()));
}

/** The table of terms; `changed` is called when the terms of the direction that is shown change. */
export class Glossary {
  /** @param {() => void} changed */
  constructor(changed) {
    this.changed = changed;
    this.summary = el("summary", {}, t("glossary"));
    this.body = el("tbody", {});
    this.heads = [el("th", { scope: "col" }), el("th", { scope: "col" })];
    this.problem = el("p", { class: "status problem", role: "status" });
    const file = el("input", { type: "file", id: "glossary-file", class: "unseen", tabindex: "-1", accept: ".tsv,.txt", onchange: async () => {
      if (file.files[0]) await this.import(file.files[0]);
      file.value = "";
    } });
    this.exportAction = el("button", { onclick: () => saveAs(`glossary.${this.pair.join("-")}.tsv`, this.terms.map((row) => `${row.join("\t")}\n`).join("")) }, t("exportTerms"));
    this.node = el("details", { class: "glossary" }, this.summary, el("p", { class: "help" }, t("glossaryHelp")),
      el("table", {}, el("thead", {}, el("tr", {}, this.heads, el("td", {}))), this.body),
      el("p", { class: "buttons" }, el("button", { onclick: () => file.click() }, t("importTerms")), file, this.exportAction), this.problem);
    addEventListener("storage", (event) => { // another tab has changed it
      if (event.key !== local.name(this.name) && event.key !== null) return;
      this.read(this.rows.filter((row) => row.join("") && !isTerm(row))); // rows that are being typed here
      this.changed();
    });
  }

  /**
   * Add the terms of a file in UTF-8, or in the UTF-16 of Excel.
   * @param {File} file
   */
  async import(file) {
    const bytes = new Uint8Array(await file.arrayBuffer());
    const isUtf16 = bytes[0] === 0xff && bytes[1] === 0xfe;
    try {
      this.add(rowsOf(new TextDecoder(isUtf16 ? "utf-16le" : "utf-8", { fatal: true }).decode(bytes)));
    } catch {
      this.problem.textContent = t("notUtf8");
    }
  }

  get name() {
    return `glossary.${this.pair.join("-")}`;
  }

  /**
   * The terms of a direction, as far as they are valid.
   * @param {string[]} pair @returns {string[][]}
   */
  termsOf(pair) {
    return JSON.parse(local.get(`glossary.${pair.join("-")}`) ?? "[]").filter(isTerm);
  }

  /** The terms of the direction that is shown, for a request. */
  get used() {
    return usedOf(this.terms);
  }

  /**
   * Show the terms of a direction; `names` are those of its languages.
   * @param {string[]} pair @param {string[]} names
   */
  show(pair, names) {
    if (this.pair?.join() === pair.join()) return;
    this.pair = pair;
    this.names = names;
    this.heads.forEach((head, i) => { head.textContent = names[i]; });
    this.read();
  }

  /**
   * Show the terms that are stored, and other rows.
   * @param {string[][]} others
   */
  read(others = []) {
    this.terms = this.termsOf(this.pair);
    this.takeFormer();
    const rows = [...this.terms, ...others, ["", ""]].map((row) => this.row(row));
    this.body.replaceChildren(...rows);
    this.report();
  }

  /** Terms of the time when there was one glossary for all directions become those of the direction that is shown. */
  takeFormer() {
    const former = local.get(FORMER);
    this.hasFormer = former !== null;
    if (!this.hasFormer) return;
    this.terms = [...this.terms, ...rowsOf(former).filter(isTerm)];
    local.set(this.name, JSON.stringify(this.terms));
    local.remove(FORMER);
  }

  /** @param {string[]} sides */
  row(sides) {
    const fields = sides.map((_, i) => el("input", { "aria-label": `${t("glossary")}, ${this.names[i]}`, lang: this.pair[i], dir: "auto", spellcheck: "false",
      oninput: () => this.edited(), onpaste: (event) => this.paste(event) }));
    fields.forEach((field, i) => { field.value = sides[i]; });
    const remove = el("button", { "aria-label": t("remove"), title: t("remove"), onclick: () => { row.remove(); this.edited(); this.body.lastElementChild.querySelector("input").focus(); } }, "×");
    const row = el("tr", {}, fields.map((field) => el("td", {}, field)), el("td", {}, remove));
    return row;
  }

  get rows() {
    return [...this.body.rows].map((row) => [...row.querySelectorAll("input")].map((field) => field.value.trim()));
  }

  edited() {
    if (this.rows.at(-1).join("")) this.body.append(this.row(["", ""]));
    this.hasFormer = false;
    this.terms = this.rows.filter(isTerm);
    local.set(this.name, JSON.stringify(this.terms));
    this.report();
    this.changed();
  }

  /**
   * Several terms at once, from a table or a text.
   * @param {ClipboardEvent} event
   */
  paste(event) {
    const text = event.clipboardData.getData("text");
    if (!/[\t\n]/.test(text.trim())) return;
    event.preventDefault();
    this.add(rowsOf(text));
  }

  /** @param {string[][]} rows */
  add(rows) {
    const last = this.body.lastChild;
    for (const row of rows) if (row.join("")) last.before(this.row([row[0], row.slice(1).join(" ")]));
    this.edited();
  }

  report() {
    const wrong = this.rows.findIndex((row) => row.join("") && !isTerm(row));
    const isFull = this.terms.length > MAX_TERMS;
    this.problem.textContent = wrong >= 0 ? t("notATerm", wrong + 1) : isFull ? t("tooManyTerms", MAX_TERMS) : this.hasFormer ? t("formerTerms") : "";
    this.summary.textContent = this.terms.length ? t("glossaryOf", this.terms.length) : t("glossary");
    [...this.body.rows].forEach((row, i, all) => { row.querySelector("button").hidden = i === all.length - 1; });
    this.exportAction.hidden = !this.terms.length;
  }
}
