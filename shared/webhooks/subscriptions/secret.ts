/** Secrets of webhooks: what may be one, and how little of it is shown once it is made. */
import * as z from "zod/mini";
import { limits } from "#shared/limits.ts";
import { text } from "#shared/schema.ts";

/** Begins a secret that goes on as base64, as Standard Webhooks has it. */
export const STANDARD = "whsec_";

/** Others decode what follows; what they could not, or what is no key at all, must not sign. */
const isKey = (secret: string): boolean => {
  const encoded = secret.slice(STANDARD.length);
  return encoded !== "" && Buffer.from(encoded, "base64").toString("base64") === encoded;
};

export const Secret = text(limits.secretKey, limits.secretKeyMin).check(
  z.refine((secret) => !secret.startsWith(STANDARD) || isKey(secret), {
    error: `must go on as base64 after ${STANDARD}`,
  }),
);

const SHOWN = 4;

/** Its last characters, so that people can tell secrets apart: four, and never more than a quarter of what is secret in it. */
export function maskOf(secret: string): string {
  const characters = [...(secret.startsWith(STANDARD) ? secret.slice(STANDARD.length) : secret)];
  const shown = Math.min(SHOWN, Math.floor(characters.length / 4));
  return `••••${characters.slice(characters.length - shown).join("")}`;
}
