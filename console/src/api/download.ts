/**
 * Saves a response of the API as a file. A plain link does not work, because the service accepts the session's cookie only with the header
 * in `SAME_SITE`, and a link cannot send a header.
 */
import { RequestFailed, SAME_SITE, signIn, withSession } from "./client.ts";

export async function download(path: string, name: string): Promise<void> {
  const response = await withSession(new Request(path, { headers: SAME_SITE }));
  if (response.status === 401) return signIn();
  if (!response.ok) throw new RequestFailed(response.status, await response.json().catch(() => undefined));
  const url = URL.createObjectURL(await response.blob());
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}
