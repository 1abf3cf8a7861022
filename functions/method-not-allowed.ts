/** Answers 405 with the allowed methods if the path exists but not for the method of the request. */
import { readFileSync } from "node:fs";
import * as z from "zod/mini";
import { refusingMethods } from "#shared/http/endpoint.ts";
import { oncePerInstance } from "#shared/instance.ts";

/** The methods of each path, which are in methods.json. The build writes this file into the function's folder. */
const Methods = z.record(z.string(), z.array(z.string()));
const file = new URL("methods.json", import.meta.url);
const methods = /* @__PURE__ */ oncePerInstance(() => Methods.parse(JSON.parse(readFileSync(file, "utf8"))));

export const handler = refusingMethods((path) => methods()[path] ?? []);
