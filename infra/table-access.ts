/** Rights on the table that many routes share. */
import type { Access } from "./routes.ts";

export type TableAccess = NonNullable<Access["table"]>;

/** What every signed-in request needs: the subject's company and user, then the user's row. */
export const caller: TableAccess = { identity: ["GetItem"], reference: ["GetItem"] };
/** And with the names of the company's statuses, tags and users. */
export const dictionary: TableAccess = { ...caller, reference: ["GetItem", "Query"] };
export const newIds: TableAccess = { ids: ["UpdateItem"] };
