/** Creates territories from a GeoJSON file. */
import { useRef, useState } from "react";
import { useChange } from "../api/change.ts";
import { answer, api } from "../api/client.ts";
import { Button } from "../ui/button.tsx";
import { notifyDone, notifyFailed } from "../ui/notices.tsx";
import { amount } from "../ui/text.ts";
import { type Imported, ImportResult } from "./import-result.tsx";

export function ImportButton() {
  const input = useRef<HTMLInputElement>(null);
  const [imported, setImported] = useState<Imported>();
  const send = useChange({
    run: async (file: File): Promise<Imported> => {
      const collection = collectionIn(await file.text());
      const body = { type: "FeatureCollection" as const, ...collection };
      return { ...collection, result: await answer(api.POST("/api/territories/import", { body })) };
    },
    stale: ["territories"],
    onDone: (done) => {
      const { created, results } = done.result;
      if (created === results.length) notifyDone(`${amount(created, "feature")} imported.`);
      else setImported(done);
    },
    onError: notifyFailed,
  });
  return (
    <>
      <Button kind="quiet" disabled={send.isPending} onClick={() => input.current?.click()}>
        Import GeoJSON
      </Button>
      <input
        ref={input}
        type="file"
        accept=".json,.geojson,application/geo+json"
        aria-label="GeoJSON file"
        hidden
        onChange={({ target }) => {
          const [file] = target.files ?? [];
          if (file !== undefined) send.mutate(file);
          target.value = "";
        }}
      />
      {imported !== undefined && <ImportResult imported={imported} onClose={() => setImported(undefined)} />}
    </>
  );
}

/**
 * Returns the members of the GeoJSON file that the service reads. `crs` is one of them, because the service refuses a file whose coordinate
 * reference system is not WGS 84.
 */
function collectionIn(text: string): { features: unknown[]; crs?: unknown } {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && "features" in value && Array.isArray(value.features)) {
      return { features: value.features, ...("crs" in value && { crs: value.crs }) };
    }
  } catch {
    // A file that is not JSON leads to the same error message as JSON of another format.
  }
  throw new Error("This file is not a GeoJSON FeatureCollection.");
}
