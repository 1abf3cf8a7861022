/** Key of a company's data key. */
import type { Key } from "#shared/db/keys.ts";

export const secretKeys = {
  /** Under which key are the secrets of the company's webhooks encrypted? In a partition that few functions may read. */
  dataKey: (companyId: number): Key => ({ pk: `C#${companyId}#WK`, sk: "KEY" }),
} as const;
