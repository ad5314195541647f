// SPDX-License-Identifier: Apache-2.0
// Numbers and names as text. Names come from recordings, which anybody may have written: what would command a terminal or turn
// the direction of a line is shown as a sign of its own.

const pictures = 0x2400; // control pictures: U+2400 stands for U+0000
const hidden = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

export function visible(text: string, most = 200): string {
  const shown = text.slice(0, most + 1).replace(hidden, (c) => {
    const code = c.charCodeAt(0);
    if (code < 0x20) return String.fromCharCode(pictures + code);
    if (code === 0x7f) return "\u2421";
    return `\u27e8U+${code.toString(16).toUpperCase().padStart(4, "0")}\u27e9`;
  });
  return text.length > most ? `${shown.slice(0, most)}\u2026` : shown;
}

/** Decimals that show `largest` with so many significant digits. */
export function decimalsFor(largest: number, digits = 3, most = 4): number {
  if (!(largest > 0)) return 0;
  return Math.min(Math.max(digits - 1 - Math.floor(Math.log10(largest)), 0), most);
}

export function fixed(value: number, decimals: number): string {
  const text = value.toFixed(decimals);
  if (value > 0 && Number(text) === 0) return `<${(10 ** -decimals).toFixed(decimals)}`;
  return decimals === 0 ? grouped(Number(text)) : text;
}

export const grouped = (count: number): string => Math.round(count).toString().replace(/\B(?=(\d{3})+$)/g, ",");
export const percent = (share: number): string => `${fixed(share * 100, 1)}\u00a0%`;

/** "12.3 ms": in the unit that fits. */
export function time(ns: number): string {
  const size = Math.abs(ns);
  const [unit, word] = size >= 1e9 ? [1e9, "s"] : size >= 1e6 ? [1e6, "ms"] : size >= 1e3 ? [1e3, "us"] : [1, "ns"];
  return `${fixed(ns / unit, unit === 1 ? 0 : decimalsFor(size / unit))} ${word}`;
}

export function bytes(count: number): string {
  return count >= 1e6 ? `${(count / 1e6).toFixed(1)} MB` : `${(count / 1e3).toFixed(1)} kB`;
}

/** Round values between low and high, about so many. */
export function ticks(low: number, high: number, about: number): number[] {
  const raw = (high - low) / Math.max(about, 1);
  if (!(raw > 0)) return [];
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((f) => f * power).find((s) => s >= raw) ?? raw;
  const found: number[] = [];
  for (let at = Math.ceil(low / step) * step; at <= high + step * 1e-9; at += step) found.push(at);
  return found;
}
