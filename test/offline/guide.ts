/** Reads the sequence diagrams and the headings of docs/offline.md, with which tests compare the reference client. */
import { readFileSync } from "node:fs";
import { expect } from "vitest";

const guide = readFileSync(new URL("../../docs/offline.md", import.meta.url), "utf8");

/** Returns the arrows of a section's sequence diagram, without arrows from the user, which are no part of the protocol. */
export function arrowsOf(section: string): string[] | undefined {
  const [, diagram] = /^```mermaid\nsequenceDiagram\n(.*?)^```$/ms.exec(section) ?? [];
  const lines = diagram?.split("\n").map((line) => line.trim());
  for (const line of lines ?? []) expect(line).toMatch(LINE);
  return lines?.filter((line) => /^(?:app|service)-/.test(line));
}
const LINE =
  /^(?:|(?:actor|participant) \w+ as [\w ]+|(?:app|service|user)-(?:-?>>|-?x)(?:app|service|store): .+|Note over [\w, ]+: .+|loop .+|end)$/;

export const sections = new Map(
  guide
    .split(/^#{2,3} /m)
    .slice(1)
    .map((section) => [section.split("\n", 1)[0] ?? "", section]),
);
const [, described = ""] = /^## Failure by failure\n(.*?)^## /ms.exec(guide) ?? [];
export const headings = [...described.matchAll(/^### (.+)$/gm)].map(([, heading]) => heading);
