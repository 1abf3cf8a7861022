/** Finds access tokens, API keys and personal data in log lines. The API tests check each line that the functions write. */
import { firstNames, lastNames } from "../../infra/local/demo/people.ts";

/** A word that tests write into names, notes, addresses and other fields. No log line may contain it. */
export const PRIVATE_WORD = "Zqxprivate";

const patterns: Readonly<Record<string, RegExp>> = {
  token: /eyJ[\w-]{8,}\.[\w-]{8,}|\bbearer\s+[\w-]{8}/i,
  "API key": /pck_\w{8}_\w/,
  "e-mail address": /[\w.+-]+@[\w-]+(?:\.[\w-]+)*\.[a-z]{2,}/i,
  "phone number": /\(\d{3}\) ?\d{3}-\d{4}|\b\d{3}-\d{3}-\d{4}\b|\+\d{8,15}\b/,
  // First and last names of the demo data, and of the users that tests create.
  name: new RegExp(
    `\\b(?:${firstNames.join("|")}|Olga|Ada|Ravi|Rita|Vera|Iris|Otto) (?:${lastNames.join("|")}|Owner|Admin|Rep)\\b`,
  ),
  "private word": new RegExp(PRIVATE_WORD, "i"),
};

/** Returns the kinds of tokens and personal data in the line, for example `["token"]`. */
export const leaksOf = (line: string): string[] =>
  Object.entries(patterns).flatMap(([what, pattern]) => (pattern.test(line) ? [what] : []));

const SAMPLES = 20;

/** Collects up to `SAMPLES` log lines that contain tokens or personal data. */
export function watchLogs(): { readonly add: (file: string, line: string) => void; readonly leaks: readonly string[] } {
  const leaks: string[] = [];
  return {
    leaks,
    add(file, line) {
      if (leaks.length >= SAMPLES) return;
      const found = leaksOf(line);
      if (found.length > 0) leaks.push(`${file} logs a ${found.join(" and a ")}: ${line.slice(0, 500)}`);
    },
  };
}
