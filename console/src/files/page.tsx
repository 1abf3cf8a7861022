/** The page for importing and exporting CSV files. It also lists the jobs that changed many prospects. */
import { download } from "../api/download.ts";
import { mayManage, useMe } from "../api/reference.ts";
import { Button } from "../ui/button.tsx";
import { notifyFailed } from "../ui/notices.tsx";
import { Page, Panel } from "../ui/page.tsx";
import { ImportPanel } from "./import-panel.tsx";
import { ImportTable } from "./import-table.tsx";
import { JobTable } from "./job-table.tsx";

const save = (path: string, name: string) => void download(path, name).catch(notifyFailed);

export function FilesPage() {
  const me = useMe().data;
  if (me === undefined) return null;
  return (
    <Page title="Imports and exports" lead="Prospects as CSV files.">
      <Panel
        title="Export"
        actions={
          <>
            <Button onClick={() => save("/api/prospects/import/template.csv", "template.csv")}>Empty template</Button>
            <Button kind="main" onClick={() => save("/api/prospects/export", "prospects.csv")}>
              Download all prospects
            </Button>
          </>
        }
      >
        <p>To export some prospects, filter them on the page Prospects and use the button Export there.</p>
      </Panel>
      {mayManage(me) && (
        <>
          <ImportPanel />
          <ImportTable />
          <JobTable />
        </>
      )}
    </Page>
  );
}
