// The choice of the languages.

import { el } from "./elements.js";
import { languageName, t } from "./strings.js";

/** Two fields for the languages of a translation; `changed` is called when the user, or the detection, changes one. */
export class Languages {
  /**
   * @param {LanguageRow[]} languages @param {ModelRow[]} models @param {Settings} settings @param {() => void} changed
   */
  constructor(languages, models, settings, changed) {
    this.rows = new Map(languages.map((language) => [language.code, language]));
    this.models = models;
    this.changed = changed;
    this.codes = languages.map(({ code }) => code).filter((code) => this.targetsOf(code).length);
    this.canDetect = models.some((model) => model.features.includes("detect"));
    const detect = this.canDetect ? [["auto", t("detect")]] : [];
    this.source = this.select(t("source"), [...detect, ...this.codes.map((code) => [code, this.name(code)])]);
    this.target = this.select(t("target"), []);
    const [asked] = location.hash.slice(1).split("&"); // both codes may have hyphens
    const from = [...this.source.options].map((option) => option.value).find((code) => (
      asked.startsWith(`${code}-`) && this.targetsOf(code).includes(asked.slice(code.length + 1))));
    this.source.value = from ?? settings.language.source?.code ?? this.codes[0];
    this.setTargets(from ? asked.slice(from.length + 1) : settings.language.target?.code);
  }

  /** @param {string} label @param {string[][]} rows */
  select(label, rows) {
    const change = () => { this.detected = undefined; this.setTargets(this.target.value); this.changed(); };
    return el("select", { "aria-label": label, onchange: change }, rows.map(([code, name]) => el("option", { value: code }, name)));
  }

  /** @param {string} code */
  name(code) {
    return languageName(code, this.rows.get(code)?.name);
  }

  /** @param {string} code @returns {string[]} */
  targetsOf(code) {
    if (code === "auto") return [...new Set(this.codes.flatMap((other) => this.targetsOf(other)))];
    return (this.rows.get(code)?.targets ?? []).filter((other) => other !== code);
  }

  /** @param {string} target */
  sourcesOf(target) {
    return this.codes.filter((code) => this.targetsOf(code).includes(target));
  }

  /** @param {string} wanted */
  setTargets(wanted) {
    const codes = this.targetsOf(this.source.value);
    this.target.replaceChildren(...codes.map((code) => el("option", { value: code }, this.name(code))));
    if (codes.includes(wanted)) this.target.value = wanted;
    history.replaceState(null, "", `#${this.source.value}-${this.target.value}`);
  }

  get isAuto() {
    return this.source.value === "auto";
  }

  /** Source and target; a source that is not known yet is the first that the target has. */
  get pair() {
    const target = this.target.value;
    const detected = this.detected !== target && this.detected;
    const source = this.isAuto ? (detected || this.sourcesOf(target)[0]) : this.source.value;
    return [source, target];
  }

  get model() {
    const [source, target] = this.pair;
    return this.models.find((model) => model.source === source && model.target === target);
  }

  /**
   * Show the detected language. If it is the target, another target is chosen. Returns what the user is to know.
   * @param {string} code
   */
  showDetected(code) {
    if (!this.isAuto) return "";
    this.source.options[0].textContent = code ? t("detected", this.name(code)) : t("detect");
    const isNew = code !== this.detected;
    this.detected = code;
    if (!isNew || !code) return "";
    const [other] = code === this.target.value ? this.targetsOf(code) : [];
    if (other) {
      this.setTargets(other);
      this.changed();
    } else if (code === this.target.value) return t("isTarget", this.name(code));
    else this.changed(); // the glossary is that of the direction
    return "";
  }

  get canSwap() {
    const [from, to] = this.pair;
    return this.targetsOf(to).includes(from);
  }

  swap() {
    const [from, to] = this.pair;
    this.source.value = to;
    this.setTargets(from);
    this.changed();
  }
}
